import Administration
import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import TestSupport
import Testing
import Upstream

@testable import Reelcache

private let film = Media(seed: 8, size: 1_000_000)

private extension Stage {
    /// Has played these films, each as a whole.
    func play(_ paths: String..., of film: Media = film) throws {
        for path in paths {
            origin.serve(path, film)
            expectWhole(try get(path), film)
        }
    }

    var names: [String] {
        get throws {
            try read(ResourceListing.self, "/resources?sort=name").resources.map {
                String($0.urlText.dropFirst(origin.url("").count))
            }
        }
    }
}

extension Scenarios {
    @Suite struct S08Control {
        // MARK: Reading

        @Test func theCacheIsReported() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4", "/b.mp4")
                let response = try stage.control("GET", "/cache", .nothing)
                let members = try response.members
                #expect(Set(members.keys) == ["directory", "size", "max_size", "min_free", "resources", "pinned"])
                let report = try response.decoded(CacheReport.self)
                #expect(
                    report.directory == stage.cache && report.maxSize == stage.setting.maxSize
                        && report.minFree == 1_000_000)
                #expect(report.resources == 2 && report.pinned == 0 && report.size >= 2 * film.size)
            }
        }

        @Test func whatIsCachedIsListedInTheOrderAskedFor() async throws {
            try await scenario { stage in
                try stage.play("/c.mp4", "/A.mp4", of: Media(seed: 1, size: 200_000))
                try stage.play("/b.mp3")
                for _ in 0..<3 { _ = try stage.get("/A.mp4", range: "bytes=0-1") }
                #expect(try stage.names == ["/A.mp4", "/b.mp3", "/c.mp4"])
                #expect(
                    try stage.read(ResourceListing.self, "/resources?sort=size").resources.first?.urlText
                        == stage.origin.url("/b.mp3"))
                let hits = try stage.read(ResourceListing.self, "/resources?sort=hits").resources
                #expect(hits.first?.urlText == stage.origin.url("/A.mp4") && hits.first?.hits == 3)
                let filtered = try stage.read(ResourceListing.self, "/resources?filter=MP4&sort=name")
                #expect(filtered.total == 2 && filtered.resources.map(\.length) == [200_000, 200_000])
                let page = try stage.read(ResourceListing.self, "/resources?sort=name&limit=1&offset=1")
                #expect(page.total == 3 && page.resources.map(\.urlText) == [stage.origin.url("/b.mp3")])
                #expect(try stage.read(ResourceListing.self, "/resources?filter=none").total == 0)
                let rest = try stage.read(
                    ResourceListing.self, "/resources?sort=name&after=" + stage.origin.url("/b.mp3"))
                #expect(rest.total == 3 && rest.resources.map(\.urlText) == [stage.origin.url("/c.mp4")])
                #expect(try stage.control("GET", "/resources?after=x").status == 400)
            }
        }

        @Test func aResourceIsShownWithWhatItLacks() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.headers = [("Cache-Control", "max-age=60")] }
                _ = try stage.get("/film.mp4", range: "bytes=131072-196607")
                let response = try stage.control("GET", "/resources?\(stage.parameter("/film.mp4"))", .nothing)
                let detail = try response.decoded(ResourceDetail.self)
                #expect(
                    detail.resource.urlText == stage.origin.url("/film.mp4")
                        && detail.finalURL == detail.resource.urlText)
                #expect(
                    detail.resource.length == film.size && detail.resource.cachedBytes == 65_536
                        && !detail.resource.isComplete)
                #expect(
                    detail.present == [ByteSpan(131_072..<196_608)]
                        && detail.missing == [ByteSpan(0..<131_072), ByteSpan(196_608..<film.size)])
                #expect(
                    detail.etag == "\"v1\"" && detail.cacheControl == "max-age=60"
                        && detail.resource.contentType == "video/mp4")
                let members = try response.members
                #expect(
                    Set(members.keys) == [
                        "resource", "final_url", "etag", "cache_control", "date", "validated_at", "initial_age",
                        "chunk_size", "present", "missing",
                    ])
                let resource = try #require(members["resource"] as? [String: Any])
                #expect(
                    Set(resource.keys) == [
                        "url", "length", "cached", "is_complete", "is_pinned", "hits", "last_access", "stored_at",
                        "type",
                    ])
            }
        }

        @Test(arguments: ["/cache", "/resources", "/resources?limit=1"]) func headGivesTheHeadAlone(path: String)
            async throws
        {
            try await scenario { stage in
                try stage.play("/a.mp4")
                let (whole, head) = (try stage.control("GET", path), try stage.control("HEAD", path))
                #expect(
                    head.status == 200 && head.body.isEmpty
                        && head.headers["Content-Length"] == whole.headers["Content-Length"])
            }
        }

        @Test func whatIsNotCachedIsNotFound() async throws {
            try await scenario { stage in
                let parameter = stage.parameter("/none.mp4")
                for (method, path, body) in [
                    ("GET", "/resources?\(parameter)", nil), ("PATCH", "/resources?\(parameter)", "{\"pinned\":true}"),
                    ("DELETE", "/resources?\(parameter)", nil), ("GET", "/resources/file?\(parameter)", nil),
                ] as [(String, String, String?)] {
                    expectRefusal(
                        try stage.control(method, path, body: body), 404, naming: stage.origin.url("/none.mp4"))
                }
                #expect(stage.origin.requestCount("/none.mp4") == 0)
            }
        }

        // MARK: Changing

        @Test func aPinIsSetTakenAndOutlivesTheProxy() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                let path = "/resources?\(stage.parameter("/a.mp4"))"
                #expect(
                    try stage.control("PATCH", path, body: "{\"pinned\": true}").decoded(ResourceDetail.self).resource
                        .isPinned)
                try stage.restart()
                #expect(try stage.read(ResourceDetail.self, path).resource.isPinned)
                #expect(try stage.read(CacheReport.self, "/cache").pinned == 1)
                #expect(
                    try !stage.control("PATCH", path, body: "{\"pinned\": false}").decoded(ResourceDetail.self).resource
                        .isPinned)
                #expect(try !stage.read(ResourceDetail.self, path).resource.isPinned)
            }
        }

        @Test func whatIsRemovedByNameIsGonePinnedOrNot() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4", "/b.mp4")
                let path = "/resources?\(stage.parameter("/a.mp4"))"
                _ = try stage.control("PATCH", path, body: "{\"pinned\": true}")
                let tried = try stage.control("DELETE", path + "&dry_run=true").decoded(RemovalReport.self)
                #expect(tried.isDryRun && tried.resources == 1 && tried.bytes >= film.size)
                #expect(try stage.names == ["/a.mp4", "/b.mp4"])
                let removed = try stage.control("DELETE", path).decoded(RemovalReport.self)
                #expect(!removed.isDryRun && removed.resources == 1 && removed.bytes >= film.size)
                #expect(try stage.names == ["/b.mp4"])
                _ = try stage.get("/a.mp4")
                #expect(stage.origin.requestCount("/a.mp4") == 2)
            }
        }

        @Test func removingAllLeavesWhatIsPinned() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4", "/b.mp4", "/c.mp4")
                _ = try stage.control("PATCH", "/resources?\(stage.parameter("/b.mp4"))", body: "{\"pinned\": true}")
                let tried = try stage.control("DELETE", "/resources?all=true&dry_run").decoded(RemovalReport.self)
                #expect(tried.resources == 2 && tried.pinned == 1 && tried.isDryRun)
                #expect(try stage.names.count == 3)
                #expect(try stage.control("DELETE", "/resources?all=true").decoded(RemovalReport.self).resources == 2)
                #expect(try stage.names == ["/b.mp4"])
            }
        }

        @Test func whatWasNotReadForLongIsRemoved() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4", "/b.mp4")
                stage.clock.advance(by: 29 * 86400)
                #expect(
                    try stage.control("DELETE", "/resources?older_than=30d").decoded(RemovalReport.self).resources == 0)
                stage.clock.advance(by: 2 * 86400)
                #expect(
                    try stage.control("DELETE", "/resources?older_than=30d&dry_run=true").decoded(RemovalReport.self)
                        .resources == 2)
                #expect(try stage.names.count == 2)
                #expect(
                    try stage.control("DELETE", "/resources?older_than=30d").decoded(RemovalReport.self).resources == 2)
                #expect(try stage.names == [])
            }
        }

        @Test(arguments: ["16000000", "\"16MB\""]) func aSmallerLimitTakesEffectAtOnce(size: String) async throws {
            try await scenario { stage in
                let large = Media(seed: 80, size: 10_000_000)
                try stage.play("/a.mp4", "/b.mp4", "/c.mp4", of: large)
                let report = try stage.control("PATCH", "/cache", body: "{\"max_size\": \(size)}").decoded(
                    CacheReport.self)
                #expect(report.maxSize == 16_000_000 && report.minFree == 1_000_000 && report.size <= 16_000_000)
                #expect(try stage.oversize() == nil && stage.stats[\.limit] == 16_000_000)
                expectWhole(try stage.get("/a.mp4"), large)
                expectWhole(try stage.get("/b.mp4"), large)
                #expect(try stage.read(CacheReport.self, "/cache").size <= 16_000_000)
                #expect(
                    try stage.control("PATCH", "/cache", body: "{\"min_free\": \"2MB\", \"max_size\": 500000000}")
                        .decoded(CacheReport.self).minFree == 2_000_000)
            }
        }

        @Test func aLimitThatCannotWorkChangesNothing() async throws {
            try await scenario { stage in
                for (body, status) in [
                    ("", 400), ("{", 400), ("[]", 400), ("20", 400), ("{}", 422), ("{\"max_sise\": 20000000}", 422),
                    ("{\"max_size\": 20000000, \"x\": 1}", 422),
                    ("{\"max_size\": \"much\"}", 422), ("{\"max_size\": -1}", 422), ("{\"max_size\": 1000}", 422),
                    ("{\"max_size\": null}", 422), ("{\"max_size\": true}", 422),
                    ("{\"max_size\": 20000000.5}", 422), ("{\"max_size\": 20000000, \"min_free\": \"-1GB\"}", 422),
                ] as [(String, Int)] {
                    let before = try stage.read(CacheReport.self, "/cache")
                    let response = try stage.control("PATCH", "/cache", body: body)
                    #expect(response.status == status, "\(body): \(response.text)")
                    expectRefusal(response, response.status)
                    let after = try stage.read(CacheReport.self, "/cache")
                    #expect(after.maxSize == before.maxSize && after.minFree == before.minFree, "\(body)")
                }
            }
        }

        // MARK: The token

        @Test(arguments: Showing.allCases.filter { $0 != .right }) func withoutTheTokenNothingChanges(showing: Showing)
            async throws
        {
            try await scenario { stage in
                try stage.play("/a.mp4")
                let named = "/resources?\(stage.parameter("/a.mp4"))"
                for (method, path, body) in [
                    ("PATCH", "/cache", "{\"max_size\": 16000000}"), ("PATCH", named, "{\"pinned\": true}"),
                    ("DELETE", named, nil),
                    ("DELETE", "/resources?all=true", nil), ("PUT", named + "&replace=true", "new"),
                    ("GET", "/resources/file?\(stage.parameter("/a.mp4"))", nil),
                    ("POST", "/verify?repair=true", nil), ("POST", "/verify", nil),
                ] as [(String, String, String?)] {
                    let response = try stage.control(method, path, showing, body: body)
                    expectRefusal(response, 401, naming: "\(stage.cache)/control-token")
                    #expect(response.headers["WWW-Authenticate"] == "Bearer")
                }
                let report = try stage.read(CacheReport.self, "/cache")
                #expect(report.maxSize == stage.setting.maxSize && report.pinned == 0)
                #expect(try stage.get("/a.mp4").isHit)
            }
        }

        @Test func theTokenIsForItsOwnerAndStays() async throws {
            try await scenario { stage in
                let path = "\(stage.cache)/control-token"
                let first = try stage.token
                #expect(first.wholeMatch(of: /[0-9a-f]{64}/) != nil)
                #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
                try stage.restart()
                #expect(try stage.token == first)
                try stage.stop()
                try FileManager.default.removeItem(atPath: path)
                try stage.start()
                #expect(try stage.token != first)
                #expect(!FileManager.default.fileExists(atPath: path + ".new"))
            }
        }

        @Test func aTokenThatOthersMayHaveReadStopsTheStart() async throws {
            try await scenario { stage in
                let path = "\(stage.cache)/control-token"
                try stage.stop()
                for mode in [0o644, 0o640, 0o606] {
                    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
                    let error = #expect(throws: ProxyError.self) { try stage.start() }
                    #expect(
                        error?.description.contains(path) == true && error?.description.contains("remove it") == true)
                }
                try FileManager.default.removeItem(atPath: path)
                try stage.start()
            }
        }

        @Test(arguments: ["", "secret\n", String(repeating: "g", count: 64)]) func aFileThatHoldsNoTokenStopsTheStart(
            text: String
        ) async throws {
            try await scenario { stage in
                let path = "\(stage.cache)/control-token"
                try stage.stop()
                let handle = try #require(FileHandle(forWritingAtPath: path))
                try handle.truncate(atOffset: 0)
                try handle.write(contentsOf: Data(text.utf8))
                #expect(throws: ProxyError.self) { try stage.start() }
                try FileManager.default.removeItem(atPath: path)
                try stage.start()
            }
        }

        // MARK: Import

        @Test(arguments: [1, 65_536, 3_000_001]) func anImportedFilePlays(size: Int64) async throws {
            try await scenario { stage in
                let film = Media(seed: 81, size: size)
                let url = "http://films.example/a%20b.mkv"
                let path = "/resources?url=\(stage.percentEncoded(url))"
                let fields = [
                    ("Content-Type", "video/x-matroska"), ("ETag", "\"i1\""),
                    ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ]
                let report = try stage.control("PUT", path, headers: fields, bytes: film.allBytes).decoded(
                    CachedResource.self, status: 201)
                #expect(
                    report.urlText == url && report.length == size && report.cachedBytes == size && report.isComplete)
                let response = try RawClient.get(port: stage.proxy.port, path: "/http/films.example/a%20b.mkv")
                expectWhole(response, film)
                #expect(
                    response.isHit && response.headers["Content-Type"] == "video/x-matroska"
                        && response.headers["ETag"] == "\"i1\"")
                #expect(response.headers["Last-Modified"] == "Sun, 06 Nov 1994 08:49:37 GMT")
            }
        }

        @Test func whatIsThereIsReplacedOnlyWhereThatIsAskedFor() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                let other = Media(seed: 82, size: 500_000)
                let path = "/resources?\(stage.parameter("/a.mp4"))"
                expectRefusal(try stage.control("PUT", path, bytes: other.allBytes), 409)
                expectWhole(try stage.get("/a.mp4"), film)
                #expect(try stage.control("PUT", path + "&replace=true", bytes: other.allBytes).status == 201)
                expectWhole(try stage.get("/a.mp4"), other)
                #expect(try stage.names == ["/a.mp4"])
            }
        }

        /// RFC 9110 §14.5, §15.5.16: neither stands for the file.
        @Test(arguments: [("Content-Range", "bytes 5-9/10", 400), ("Content-Encoding", "gzip", 415)])
        func aPieceAndACodingReplaceNothing(name: String, value: String, status: Int) async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                let path = "/resources?\(stage.parameter("/a.mp4"))&replace=true"
                expectRefusal(try stage.control("PUT", path, headers: [(name, value)], body: "piece"), status)
                expectWhole(try stage.get("/a.mp4"), film)
            }
        }

        @Test func anImportThatBreaksOffLeavesNothing() async throws {
            try await scenario { stage in
                let size = try stage.read(CacheReport.self, "/cache").size
                let client = try stage.player()
                let fields = try stage.authorization() + [("Content-Length", "3000000")]
                try client.send(
                    client.request("/api/v1/resources?\(stage.parameter("/a.mp4"))", headers: fields, method: "PUT"))
                try client.send(Media(seed: 83, size: 2_500_000).allBytes)
                client.close()
                try stage.waitForStats("the bytes of a broken import to be gone") {
                    $0[\.size] <= size + 65_536 && $0[\.connections] == 0
                }
                #expect(try stage.names == [])
                #expect(
                    try stage.control("PUT", "/resources?\(stage.parameter("/a.mp4"))", bytes: film.allBytes).status
                        == 201)
                expectWhole(try stage.get("/a.mp4"), film)
            }
        }

        @Test func anImportThatHasNoRoomIsRefusedBeforeItComes() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let client = try stage.player()
                let fields = try stage.authorization() + [("Content-Length", "100000000"), ("Expect", "100-continue")]
                try client.send(
                    client.request("/api/v1/resources?\(stage.parameter("/a.mp4"))", headers: fields, method: "PUT"))
                expectRefusal(try client.readResponse(), 507)
                #expect(try stage.names == [] && stage.oversize() == nil)
            }
        }

        /// RFC 9110 §8.6: a length that is there twice is one.
        @Test func aLengthThatIsSaidTwiceIsOne() async throws {
            try await scenario { stage in
                let client = try stage.player()
                let fields = try stage.authorization() + [("Content-Length", "4, 4")]
                try client.send(
                    client.request("/api/v1/resources?\(stage.parameter("/a.mp4"))", headers: fields, method: "PUT")
                        + "film")
                #expect(try client.readResponse().status == 201)
            }
        }

        @Test(
            arguments: [
                ([("Transfer-Encoding", "chunked")], "3\r\nabc\r\n0\r\n\r\n", 411),
                ([("Content-Length", "0")], "", 422), ([], "", 411),
                ([("Content-Length", "3"), ("ETag", "i1")], "abc", 400),
                ([("Content-Length", "3"), ("Last-Modified", "yesterday")], "abc", 400),
            ] as [([(String, String)], String, Int)])
        func anImportThatCannotBeIsRefused(fields: [(String, String)], body: String, status: Int) async throws {
            try await scenario { stage in
                let client = try stage.player()
                try client.send(
                    client.request(
                        "/api/v1/resources?\(stage.parameter("/a.mp4"))", headers: fields + stage.authorization(),
                        method: "PUT") + body)
                expectRefusal(try client.readResponse(), status)
                #expect(try stage.names == [])
            }
        }

        // MARK: The file of a complete resource

        @Test func aCompleteFileStaysWhileTheConnectionIsOpen() async throws {
            try await scenario { stage in
                let large = Media(seed: 84, size: 20_000_000)
                try stage.play("/a.mp4", of: large)
                let client = try stage.player()
                try client.send(
                    client.request(
                        "/api/v1/resources/file?\(stage.parameter("/a.mp4"))", headers: stage.authorization()))
                #expect(try client.readHead().headers["Content-Type"] == "application/json")
                let line = try #require(
                    JSONSerialization.jsonObject(with: Data(try client.readBody(upTo: 4096))) as? [String: Any])
                #expect(line["length"] as? Int64 == large.size)
                let path = "\(stage.cache)/\(try #require(line["path"] as? String))"
                _ = try stage.control("PATCH", "/cache", body: "{\"max_size\": \"16MB\"}")
                let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
                #expect(large.difference(Array(bytes.prefix(Int(large.size))), from: 0..<large.size) == nil)
                client.close()
                try stage.waitForStats("what is too much to be evicted") { $0[\.size] <= 16_000_000 }
            }
        }

        @Test func anIncompleteFileIsRefusedWithWhatItLacks() async throws {
            struct Refusal: Decodable {
                let error: String
                let missing: [ByteSpan]
            }
            try await scenario { stage in
                stage.origin.serve("/a.mp4", film)
                _ = try stage.get("/a.mp4", range: "bytes=65536-131071")
                let refusal = try stage.control("GET", "/resources/file?\(stage.parameter("/a.mp4"))").decoded(
                    Refusal.self, status: 409)
                #expect(refusal.missing == [ByteSpan(0..<65_536), ByteSpan(131_072..<film.size)])
                #expect(refusal.error.contains("not complete"))
            }
        }

        // MARK: Verifying

        private static func verify(_ stage: Stage, repair: Bool) throws -> CacheValidation {
            let response = try stage.control("POST", "/verify?repair=\(repair)")
            #expect(response.status == 200 && response.headers["Cache-Control"] == "no-store")
            let lines = response.text.split(separator: "\n")
            for line in lines.dropLast() { _ = try ScrubProgress.self.decoded(line) }
            return try CacheValidation.self.decoded(try #require(lines.last))
        }

        @Test func aSoundCacheIsFoundSound() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4", "/b.mp4")
                let report = try Self.verify(stage, repair: false)
                #expect(report.isSound && report.resources == 2 && report.chunks == 32 && report.bytes == 2 * film.size)
            }
        }

        @Test func damageIsFoundLeftAndRepaired() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4", "/b.mp4")
                try stage.restart()
                let file = try #require(stage.dataFiles.first)
                let handle = try #require(FileHandle(forUpdatingAtPath: "\(stage.cache)/\(file)"))
                try handle.seek(toOffset: 70_000)
                try handle.write(contentsOf: Data([1, 2, 3, 4]))
                try handle.close()
                for repair in [false, true] {
                    let report = try Self.verify(stage, repair: repair)
                    #expect(
                        report.damaged.count == 1 && report.damaged.first?.chunks == 1
                            && report.damaged.first?.spans == [ByteSpan(65_536..<131_072)])
                    #expect(report.isRepaired == repair)
                }
                #expect(try Self.verify(stage, repair: false).isSound)
                for path in ["/a.mp4", "/b.mp4"] { expectWhole(try stage.get(path), film) }
                #expect(stage.origin.requests("/a.mp4").count + stage.origin.requests("/b.mp4").count == 3)
            }
        }

        /// Of several reports that nobody has taken yet the last counts; who has left is told nothing more, and wants
        /// nothing more.
        @Test func aVerificationGoesOnForAsLongAsSomebodyListens() throws {
            let news = ScrubNews()
            var (wakes, isOver) = (0, false)
            let far = try ["1", "2"].map {
                try ScrubProgress.self.decoded(
                    "{\"resources\":\($0),\"total_resources\":3,\"bytes\":0,\"total_bytes\":0}")
            }
            #expect(news.take(isOver: &isOver) == .wait)
            let note = { (progress: ScrubProgress, milliseconds: UInt64) in
                news.note(progress, now: milliseconds * 1_000_000) { wakes += 1 }
            }
            #expect(note(far[0], 1000) && note(far[1], 1001) && wakes == 1)
            #expect(news.take(isOver: &isOver) == .line(try ControlJSON.line(far[1])))
            #expect(news.take(isOver: &isOver) == .wait)
            // Not more often than people can read, however fast it is.
            #expect(note(far[0], 1199) && wakes == 1 && news.take(isOver: &isOver) == .wait)
            #expect(note(far[1], 1200) && wakes == 2)
            #expect(news.take(isOver: &isOver) == .line(try ControlJSON.line(far[1])))
            news.stop()
            #expect(!note(far[0], 2000) && wakes == 2)
            news.end([1]) { wakes += 1 }
            #expect(wakes == 3 && news.take(isOver: &isOver) == .line([1]) && news.take(isOver: &isOver) == .end)
        }

        /// Nobody waits for the end of a long film after Ctrl-C.
        @Test func aVerificationCanBeStoppedInTheMiddleOfAResource() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4", of: Media(seed: 88, size: 20_000_000))
                try stage.stop()
                var configuration = ProxyConfiguration()
                configuration.cacheDirectory = stage.cache
                let error = #expect(throws: ControlError.self) {
                    try configuration.verify(repairs: false) { ($0?.bytes ?? 0) == 0 }
                }
                #expect(error?.description == "interrupted")
            }
        }

        /// A stream is one resource, as in lists.
        @Test func partsOfAStreamDoNotCountAsResources() async throws {
            try await scenario { stage in
                let list = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n#EXTINF:2,\n2.ts\n#EXT-X-ENDLIST\n"
                stage.origin.serve(
                    "/v/film.m3u8", bytes: Array(list.utf8), contentType: "application/vnd.apple.mpegurl")
                for name in ["1.ts", "2.ts"] {
                    stage.origin.serve("/v/\(name)", Media(seed: 8, size: 100_000), contentType: "video/mp2t")
                }
                for name in ["film.m3u8", "1.ts", "2.ts"] { try #expect(stage.get("/v/\(name)").status == 200) }
                try stage.waitForListing([stage.origin.url("/v/film.m3u8")])
                try stage.stop()
                var configuration = ProxyConfiguration()
                configuration.cacheDirectory = stage.cache
                var progress: [ScrubProgress] = []
                let report = try configuration.verify(repairs: false) {
                    if let far = $0 { progress.append(far) }
                    return true
                }
                #expect(report.isSound && report.resources == 1 && report.bytes > 200_000)
                #expect(!progress.isEmpty && progress.allSatisfy { $0.resources <= 1 && $0.totalResources == 1 })
            }
        }

        @Test func oneVerificationRunsAtATime() {
            let scrubs = ScrubTurn()
            #expect(scrubs.begin() && !scrubs.begin())
            scrubs.end()
            #expect(scrubs.begin())
        }

        // MARK: Without a proxy

        /// The limit that it was filled under is not known to a command.
        @Test func aCacheThatIsOpenedAloneIsNotEvictedToALimit() async throws {
            try await scenario { stage in
                let large = Media(seed: 86, size: 10_000_000)
                try stage.play("/a.mp4", "/b.mp4", "/c.mp4", of: large)
                try stage.stop()
                var configuration = ProxyConfiguration()
                (configuration.cacheDirectory, configuration.maxSize, configuration.minFree) = (
                    stage.cache, 16_000_000, 0
                )
                let film = stage.cache + "/../film"
                try Data(Media(seed: 87, size: 1_000_000).allBytes).write(to: URL(fileURLWithPath: film))
                // What comes in makes the store look for room.
                let cachedAfterImport = { (path: String, use: CacheUse) in
                    let file = try ImportedFile(film)
                    return try configuration.withProxy(for: use) { cache in
                        let url = try OriginURL(url: "http://films.example" + path)
                        _ = try cache.importFile(url, file: file, fields: .init(), replaces: false) { _ in true }
                        return try cache.resources(ResourceQuery()).resources.reduce(0) { $0 + $1.cachedBytes }
                    }
                }
                #expect(try cachedAfterImport("/a", .lookup) == 3 * large.size + 1_000_000)
                let left = try cachedAfterImport("/b", .adding)
                // Room for it was made out of the rest, and no more.
                #expect(left > 25_000_000 && left <= 32_000_000, "\(left)")
            }
        }

        @Test func aLookOpensNothingElse() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                try stage.stop()
                var configuration = ProxyConfiguration()
                configuration.cacheDirectory = stage.cache
                let databases = ["downloads", "feeds"].map { "\(stage.cache)/\($0).sqlite" }
                for path in databases { try? FileManager.default.removeItem(atPath: path) }
                try configuration.withProxy { proxy in
                    #expect(proxy.isOwn && proxy.own == nil)
                    #expect(try proxy.resources(ResourceQuery()).total == 1)
                    #expect(try proxy.allDownloads().downloads.isEmpty)
                    #expect(try proxy.feeds().isEmpty)
                    let (status, _) = try BlockingFetch.get(url: proxy.baseURL + "/api/v1/resources", timeout: 10)
                    #expect(status == 401)
                }
                #expect(!databases.contains { FileManager.default.fileExists(atPath: $0) })
            }
        }

        /// Other commands would send it orders, which it never carries out.
        @Test func aProxyThatPlaysForOneCommandIsFoundByNoOther() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                try stage.stop()
                var configuration = ProxyConfiguration()
                configuration.cacheDirectory = stage.cache
                try configuration.withProxy(for: .playing) { proxy in
                    #expect(proxy.own != nil)
                    #expect(RunningProxy(cacheDirectory: stage.cache) == nil)
                }
            }
        }

        @Test func databasesThatCannotBeOpenedStopOnlyWhatNeedsThem() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                try stage.stop()
                var configuration = ProxyConfiguration()
                configuration.cacheDirectory = stage.cache
                for name in ["downloads", "feeds"] {
                    try? FileManager.default.removeItem(atPath: "\(stage.cache)/\(name).sqlite")
                    try FileManager.default.createDirectory(
                        atPath: "\(stage.cache)/\(name).sqlite", withIntermediateDirectories: false)
                }
                try configuration.withProxy { proxy in
                    let total = try proxy.resources(ResourceQuery()).total
                    #expect(total == 1)
                    let error = #expect(throws: ControlError.self) { try proxy.allDownloads() }
                    #expect(error?.reason.contains("cannot open the downloads in") == true, "\(error?.reason ?? "")")
                    #expect(throws: ControlError.self) { try proxy.feeds() }
                }
            }
        }

        /// A command that waits for its first word wants to be stopped as well.
        @Test func whatHasNotBegunCanBeStopped() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                let url = try OriginURL(url: stage.origin.url("/a.mp4"))
                var configuration = ProxyConfiguration()
                configuration.cacheDirectory = stage.cache
                for isAlone in [false, true] {
                    if isAlone { try stage.stop() }
                    let unwanted: [() throws -> Void] = [
                        {
                            try configuration.withProxy {
                                try $0.withFile(url, isWanted: { false }) { _ in Issue.record("it goes on") }
                            }
                        },
                        { _ = try configuration.verify(repairs: false) { $0 != nil } },
                    ]
                    for work in unwanted {
                        let error = #expect(throws: ControlError.self, performing: work)
                        #expect(error?.description == "interrupted")
                    }
                }
            }
        }

        /// Then nothing keeps the file as it is any more.
        @Test func aFileIsHeldUntilTheProxyEnds() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                let url = try OriginURL(url: stage.origin.url("/a.mp4"))
                let proxy = try #require(RunningProxy(cacheDirectory: stage.cache))
                var held: [Bool] = []
                try proxy.withFile(url, isWanted: { true }) { lent in
                    held.append(lent.isHeld())
                    try stage.stop()
                    held.append(lent.isHeld())
                }
                #expect(held == [true, false])
            }
        }

        @Test func aFileThatChangesWhileItIsReadIsNotTakenIn() async throws {
            try await scenario { stage in
                let film = stage.cache + "/../film"
                var configuration = ProxyConfiguration()
                configuration.cacheDirectory = stage.cache
                for change in ["as long", "longer", "shorter"] {
                    try Data(Media(seed: 87, size: 3_000_000).allBytes).write(to: URL(fileURLWithPath: film))
                    // Not written in this tick of the clock.
                    try FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSince1970: 1e9)], ofItemAtPath: film)
                    let file = try ImportedFile(film)
                    var isChanged = false
                    let error = #expect(throws: FileError.self) {
                        try configuration.withProxy(for: .adding) { cache in
                            try cache.importFile(
                                OriginURL(url: "http://films.example/a"), file: file, fields: .init(),
                                replaces: false
                            ) { _ in
                                if !isChanged, let handle = FileHandle(forWritingAtPath: film) {
                                    if change == "longer" { handle.seekToEndOfFile() }
                                    if change == "shorter" {
                                        handle.truncateFile(atOffset: 2_000_000)
                                    } else {
                                        handle.write(Data([1]))
                                    }
                                    isChanged = true
                                }
                                return true
                            }
                        }
                    }
                    #expect(
                        error?.description == "\(film) has changed while it was read: try again",
                        "\(change)")
                    #expect(try configuration.withProxy { try $0.resources(ResourceQuery()).total } == 0)
                }
            }
        }

        /// Another command, or a proxy that takes no more connections: both will soon be gone.
        @Test(arguments: ["", "http://127.0.0.1:1"]) func whoHasTheCacheForAMomentIsWaitedFor(url: String) async throws
        {
            try await scenario { stage in
                try stage.play("/a.mp4")
                try stage.stop()
                let lock = open(stage.cache + "/LOCK", O_RDWR | O_CLOEXEC)
                defer { close(lock) }
                let owner = "{\"pid\":4242,\"url\":\"\(url)\"}"
                #expect(
                    flock(lock, LOCK_EX) == 0 && ftruncate(lock, 0) == 0
                        && pwrite(lock, owner, owner.utf8.count, 0) == owner.utf8.count)
                var configuration = ProxyConfiguration()
                (configuration.cacheDirectory, configuration.minFree) = (stage.cache, 0)
                let error = #expect(throws: ControlError.self) {
                    try configuration.withProxy(isWanted: { false }) { try $0.resources(ResourceQuery()).total }
                }
                #expect(error?.description == "interrupted")
                let isWanted = {
                    flock(lock, LOCK_UN)
                    return true
                }
                #expect(
                    try configuration.withProxy(isWanted: isWanted) { try $0.resources(ResourceQuery()).total } == 1)
            }
        }

        @Test func anInterruptedImportLeavesNothing() async throws {
            try await scenario { stage in
                let film = stage.cache + "/../film"
                try Data(Media(seed: 87, size: 3_000_000).allBytes).write(to: URL(fileURLWithPath: film))
                var configuration = ProxyConfiguration()
                configuration.cacheDirectory = stage.cache
                let file = try ImportedFile(film)
                let error = #expect(throws: ControlError.self) {
                    try configuration.withProxy(for: .adding) { cache in
                        try cache.importFile(
                            OriginURL(url: "http://films.example/a"), file: file, fields: .init(), replaces: false
                        ) { $0 == 0 }
                    }
                }
                #expect(error?.description == "interrupted")
                #expect(try configuration.withProxy { try $0.resources(ResourceQuery()).total } == 0)
            }
        }

        // MARK: Bad input

        @Test func whatCannotBeAskedIsToldInOneLine() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                for (method, path, status) in [
                    ("GET", "", 404), ("GET", "/", 404), ("GET", "/resource", 404), ("GET", "/resources/", 404),
                    ("POST", "/cache", 405), ("PUT", "/cache", 405),
                    ("POST", "/resources", 405), ("GET", "/verify", 405), ("DELETE", "/resources/file", 405),
                    ("PATCH", "/verify", 405),
                    ("GET", "/resources?sort=age", 400), ("GET", "/resources?limit=0", 400),
                    ("GET", "/resources?limit=10001", 400), ("GET", "/resources?limit=x", 400),
                    ("GET", "/resources?offset=-1", 400), ("GET", "/resources?limt=1", 400),
                    ("GET", "/resources?filter=%zz", 400), ("GET", "/resources?limit=1&limit=2", 400),
                    ("GET", "/resources?url=", 400), ("GET", "/resources?url=film.mp4", 400),
                    ("GET", "/resources?url=ftp://a/b", 400),
                    ("GET", "/resources?url=http://a/b?c=1&d=2", 400),
                    ("GET", "/resources?url=http://a/&sort=size", 400),
                    ("GET", "/cache?x", 400),
                    ("PATCH", "/resources", 400), ("DELETE", "/resources", 400),
                    ("DELETE", "/resources?all=false", 400),
                    ("DELETE", "/resources?all=yes", 400),
                    ("DELETE", "/resources?all=true&older_than=1d", 400), ("DELETE", "/resources?older_than=30", 400),
                    ("DELETE", "/resources?older_than=-1d", 400),
                    ("DELETE", "/resources?url=http://a/&all=true", 400),
                    ("DELETE", "/resources?all=true&dry_run=maybe", 400),
                    ("PUT", "/resources", 400),
                    ("GET", "/resources/file", 400), ("POST", "/verify?repair=please", 400),
                ] as [(String, String, Int)] {
                    let response = try stage.control(method, path)
                    #expect(response.status == status, "\(method) \(path): \(response.text)")
                    expectRefusal(response, response.status)
                    #expect((response.headers["Allow"] != nil) == (status == 405), "\(method) \(path)")
                    #expect(try stage.names == ["/a.mp4"], "\(method) \(path)")
                }
            }
        }

        @Test func aChangeThatCannotBeChangesNothing() async throws {
            try await scenario { stage in
                try stage.play("/a.mp4")
                for body in [
                    "", "x", "{}", "{\"pinned\": 1}", "{\"pinned\": null}", "{\"pinned\": true, \"x\": 1}",
                    "{\"Pinned\": true}", "{\"_pinned\": true}", "[true]",
                ] as [String] {
                    let path = "/resources?\(stage.parameter("/a.mp4"))"
                    let response = try stage.control("PATCH", path, body: body)
                    expectRefusal(response, response.status)
                    #expect(response.status == 400 || response.status == 422, "\(body): \(response.text)")
                    #expect(try !stage.read(ResourceDetail.self, path).resource.isPinned, "\(body)")
                }
            }
        }

        @Test(arguments: ["maxSize", "max__size", "Max_size", "max_size_"]) func aNameHasOneSpelling(name: String)
            async throws
        {
            try await scenario { stage in
                expectRefusal(try stage.control("PATCH", "/cache", body: "{\"\(name)\": \"20MB\"}"), 422, naming: name)
                #expect(try stage.read(CacheReport.self, "/cache").maxSize == stage.setting.maxSize)
            }
        }

        /// Its URL is longer as a parameter than it was as a target.
        @Test(arguments: ["%2F", "ü"]) func whatCanBePlayedCanBeAskedAbout(piece: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film", film)
                let sent = Array("/http/127.0.0.1:\(stage.origin.port)/film?".utf8)
                let target =
                    sent
                    + [UInt8](repeatElement(Array(piece.utf8), count: (8192 - sent.count) / piece.utf8.count).joined())
                let client = try stage.player()
                try client.send(
                    Array("GET ".utf8) + target + Array(" HTTP/1.1\r\nHost: 127.0.0.1:\(stage.proxy.port)\r\n\r\n".utf8)
                )
                #expect(try client.readResponse().status == 200)
                let url = try #require(try stage.read(ResourceListing.self, "/resources").resources.first?.urlText)
                #expect(
                    try stage.read(ResourceDetail.self, "/resources?url=\(stage.percentEncoded(url))").resource.urlText
                        == url)
            }
        }

        @Test func aBodyThatIsTooLongIsRefused() async throws {
            try await scenario { stage in
                let body = "{\"max_size\": 16000000" + String(repeating: " ", count: 100_000) + "}"
                expectRefusal(try stage.control("PATCH", "/cache", body: body), 413)
                #expect(try stage.read(CacheReport.self, "/cache").maxSize == stage.setting.maxSize)
            }
        }

        @Test func optionsTellWhatMayBeDone() async throws {
            try await scenario { stage in
                let response = try stage.control("OPTIONS", "/resources", .nothing)
                #expect(response.status == 204 && response.headers["Allow"] == "GET, HEAD, PATCH, DELETE, PUT, OPTIONS")
                #expect(try stage.control("POST", "/cache").headers["Allow"] == "GET, HEAD, PATCH, OPTIONS")
            }
        }
    }
}

private extension Decodable {
    static func decoded(_ line: some StringProtocol) throws -> Self {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Self.self, from: Data(line.utf8))
    }
}
