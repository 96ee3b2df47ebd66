import Dispatch
@testable import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 17, size: 300_000)

extension Scenarios {
    @Suite struct S17HostileOrigin {
        /// A coding that nobody asked for and curl leaves in place: kept, it would be played as the film ever after.
        @Test func compressedTransferIsABrokenAnswer() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.chunkedEncoding = true
                    $0.headers = [("Transfer-Encoding", "gzip, chunked")]
                }
                for _ in 1...2 { expectOneLine(try stage.get("/film.mp4"), status: 502) }
                #expect(stage.dataFiles.isEmpty)
                stage.origin.script("/film.mp4") {
                    $0.chunkedEncoding = false
                    $0.headers = []
                }
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        /// What a document costs does not follow from its length: the shortest, too, is read and rewritten where it
        /// keeps only other documents waiting.
        @Test func documentsKeepOnlyDocumentsWaiting() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let lists = ["read", "new", "none"].map { "/\($0).m3u8" }
                for path in lists {
                    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/1.ts\n#EXT-X-ENDLIST\n"
                    stage.origin.serve(
                        path, bytes: Array((path == lists[2] ? "<MPD" : text).utf8),
                        contentType: "application/vnd.apple.mpegurl")
                    stage.origin.script(path) { $0.headers = [("Cache-Control", "max-age=60")] }
                }
                for path in ["/film.mp4", lists[0]] { try #expect(stage.get(path).status == 200) }
                let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                _ = stage.proxy.cache.engine.store.performOnText(of: "127.0.0.1") {
                    begun.signal()
                    gate.wait()
                }
                begun.wait()
                // One that has not been read, one that has not been asked for by this name, and one that is none.
                let players = try [(nil, lists[1]), ("localhost", lists[0]), (nil, lists[2])].map { name, path in
                    let player = try stage.player(), host = ("Host", "\(name ?? "127.0.0.1"):\(stage.proxy.port)")
                    try player.send(player.request(stage.target(path), headers: [host, ("Connection", "close")]))
                    return player
                }
                for path in lists[1...] { try stage.origin.waitForRequests(path, count: 1) }
                try stage.catchUp()
                for path in ["/film.mp4", lists[0], "/film.mp4"] { try #expect(stage.get(path).isHit) }
                try #expect(stage.control("GET", "/resources").status == 200)
                for player in players { #expect(player.hasNothing) }
                gate.signal()
                for player in players { try #expect(player.readResponse().status == 200) }
            }
        }

        /// Of a document whose last bytes do not come, only a little is in memory if it is on the disk.
        @Test(arguments: [true, false]) func longDocumentWaitsOnTheDisk(isStored: Bool) async throws {
            try await scenario({ $0.configure { $0.maxBuffered = 4 << 20 } }) { stage in
                let line = "#EXTINF:2,\nhttps://a.example/" + String(repeating: "s", count: 500) + "\n"
                let text =
                    "#EXTM3U\n#EXT-X-TARGETDURATION:2\n" + String(repeating: line, count: 5200) + "#EXT-X-ENDLIST\n"
                let size = Int64(text.utf8.count)
                stage.origin.serve("/film.m3u8", bytes: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
                stage.origin.script("/film.m3u8") {
                    $0.headers = [("Cache-Control", isStored ? "max-age=60" : "no-store")]
                    $0.stallAfter = size - 10
                }
                let player = try stage.player()
                try player.send(player.request(stage.target("/film.m3u8"), headers: [("Connection", "close")]))
                if isStored { try stage.waitForStats("most of it") { $0[\.upstreamBytes] >= size - 10 } }
                stage.origin.release("/film.m3u8")
                // What would not fit into memory is rewritten if it is on the disk, and else sent as it is.
                let answer = try player.readResponse()
                let rewritten = answer.text.components(separatedBy: "/https/a.example/").count - 1
                #expect(answer.status == 200 && rewritten == (isStored ? 5200 : 0))
                try stage.waitForStats("nothing in transit") { $0[\.transitBytes] == 0 }
            }
        }

        @Test func headWithTooManyFieldsIsABrokenAnswer() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.headers = (0..<300).map { ("X-\($0)", "a") } }
                let response = try stage.get("/film.mp4")
                expectOneLine(response, status: 502)
                #expect(response.text.contains("more than 256 fields"))
                #expect(stage.dataFiles.isEmpty)
            }
        }

        /// What fits goes through on the first request and from the cache; the rest of a long head goes through once,
        /// and is not kept.
        @Test func longHeadIsKeptInPart() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.headers = (0..<200).map { ("X-\($0)", String(repeating: "a", count: 100)) }
                }
                for isHit in [false, true] {
                    let response = try stage.get("/film.mp4")
                    expectWhole(response, film)
                    #expect(response.isHit == isHit)
                    #expect(response.headers["X-0"] != nil && response.headers["X-199"] == nil)
                    #expect(response.headers["ETag"] != nil && response.headers["Content-Type"] == "video/mp4")
                }
            }
        }

        /// The rest of the player's answer is no trouble either: each field is looked at once.
        @Test func fieldsThatTheConnectionNamesAreNotPassedOn() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let named = Array(repeating: "a", count: 10_000).joined(separator: ",") + ", x-hop"
                stage.origin.script("/film.mp4") {
                    $0.headers = [("Connection", named), ("X-Hop", "1"), ("X-End", "2")]
                }
                let response = try stage.get("/film.mp4")
                expectWhole(response, film)
                #expect(response.headers["X-Hop"] == nil && response.headers["X-End"] == "2")
            }
        }
    }
}
