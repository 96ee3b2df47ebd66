import Administration
import CachePolicy
import DiskCache
import Foundation
import Reelcache
import Synchronization
import Testing
import TestSupport

private let film = Media(seed: 320, size: 3_000_000)

extension Scenarios {
    /// One node's cache becomes another's.
    @Suite struct S32_ArchiveTests {
        private func proxy(_ stage: Stage) throws -> RunningProxy {
            try #require(RunningProxy(cacheDirectory: stage.cache))
        }

        private func archive(_ stage: Stage) throws -> [UInt8] {
            let bytes = Mutex<[UInt8]>([])
            try proxy(stage).exportArchive(isWanted: { true }) { piece in bytes.withLock { $0 += piece } }
            return bytes.withLock { $0 }
        }

        private func warm(_ one: Stage, from other: Stage, token: String?) throws -> WarmUp.Result {
            let node = ArchiveNode("http://127.0.0.1:\(other.proxy.port)", token: token)
            return WarmUp(node, try proxy(one), rate: nil, newest: nil) { _ in true }.run()
        }

        /// A second node on the same origin.
        private func secondNode(_ stage: Stage) throws -> Stage {
            var setting = stage.setting
            setting.origin = stage.origin
            return try Stage(setting)
        }

        @Test func whatOneNodeHasPlaysFromAnotherWithoutTheOrigin() async throws {
            try await scenario { stage in
                for path in ["/a.mp4", "/b.mp4"] { stage.origin.serve(path, film) }
                expectWhole(try stage.get("/a.mp4"), film)
                _ = try stage.get("/b.mp4", range: "bytes=1000000-1999999")
                let second = try secondNode(stage)
                defer { try? second.stop() }
                let answer = try second.control("PUT", "/archive", bytes: try archive(stage))
                #expect(try answer.decoded(ArchiveReport.self).added == 2)
                let requests = stage.origin.requestCount("/a.mp4") + stage.origin.requestCount("/b.mp4")
                let whole = try second.get("/a.mp4")
                expectWhole(whole, film)
                #expect(whole.isHit)
                let part = try second.get("/b.mp4", range: "bytes=1048576-1900000")
                #expect(part.isHit && film.difference(part.body, from: 1_048_576..<1_900_001) == nil)
                #expect(stage.origin.requestCount("/a.mp4") + stage.origin.requestCount("/b.mp4") == requests)
            }
        }

        @Test func anArchiveIsSoundWhilePlayersReadAndOthersAreEvicted() async throws {
            try await scenario {
                $0.maxSize = 20_000_000
            } _: { stage in
                for number in 0..<12 { stage.origin.serve("/\(number).mp4", film) }
                for number in 0..<4 { expectWhole(try stage.get("/\(number).mp4"), film) }
                let failures = Mutex(0)
                let players = Thread {
                    for number in 4..<12 where (try? stage.get("/\(number).mp4"))?.status != 200 {
                        failures.withLock { $0 += 1 }
                    }
                }
                players.start()
                let bytes = try archive(stage)
                let second = try secondNode(stage)
                defer { try? second.stop() }
                #expect(try second.control("PUT", "/archive", bytes: bytes).decoded(ArchiveReport.self).imported > 0)
                try eventually("the end of the players") { players.isFinished }
                #expect(failures.withLock { $0 } == 0)
                for number in 0..<4 { expectWhole(try second.get("/\(number).mp4"), film) }
            }
        }

        @Test func aNodeWarmsUpAndTheSecondTimeOnlyTheListMoves() async throws {
            try await scenario { stage in
                for number in 0..<5 {
                    stage.origin.serve("/\(number).mp4", film)
                    expectWhole(try stage.get("/\(number).mp4"), film)
                }
                let second = try secondNode(stage)
                defer { try? second.stop() }
                expectWhole(try second.get("/0.mp4"), film)
                let first = try warm(second, from: stage, token: stage.token)
                #expect(first.error == nil && first.report.added == 4 && first.unwanted == 1)
                #expect(first.received < 4 * film.size + 20_000)
                let again = try warm(second, from: stage, token: stage.token)
                #expect(again.error == nil && again.received == 0 && again.unwanted == 5 && again.listBytes < 10_000)
                for number in 0..<5 { #expect(try second.get("/\(number).mp4").isHit) }
            }
        }

        @Test func aDownloadThatRunsIsNotReplaced() async throws {
            try await scenario { stage in
                stage.origin.serve("/a.mp4", film)
                expectWhole(try stage.get("/a.mp4"), film)
                let bytes = try archive(stage)
                let second = try secondNode(stage)
                defer { try? second.stop() }
                let newer = Media(seed: 321, size: 2_000_000)
                stage.origin.serve("/a.mp4", newer, etag: "\"newer\"")
                stage.origin.script("/a.mp4") { $0.stallAfter = 500_000 }
                let download = try second.download("/a.mp4")
                try download.wait(forBytes: 400_000)
                let report = try second.control("PUT", "/archive", bytes: bytes).decoded(ArchiveReport.self)
                #expect(report.kept == 1 && report.imported == 0)
                stage.origin.release("/a.mp4")
                _ = try download.complete()
                expectWhole(try second.get("/a.mp4"), newer)
            }
        }

        @Test func aDamagedArchiveIsRefusedAndNobodyElseIsAffected() async throws {
            try await scenario { stage in
                stage.origin.serve("/a.mp4", film)
                expectWhole(try stage.get("/a.mp4"), film)
                let bytes = try archive(stage)
                let second = try secondNode(stage)
                defer { try? second.stop() }
                var damaged = bytes
                damaged[2_000_000] ^= 1
                expectRefusal(try second.control("PUT", "/archive", bytes: damaged), 422, naming: "damaged at byte")
                expectRefusal(
                    try second.control("PUT", "/archive", bytes: Array("something".utf8)), 422, naming: "not an archive"
                )
                expectRefusal(try second.control("PUT", "/archive", .wrong, bytes: bytes), 401)
                #expect(try second.read(ResourceListing.self, "/resources").total == 0)
                // Whole chunks stay if that is asked for, and the rest comes from the origin.
                for (path, total) in [("/archive", 0), ("/archive?parts=true", 1)] {
                    expectRefusal(
                        try second.control("PUT", path, bytes: Array(bytes.dropLast(900))), 422,
                        naming: "cut short at byte \(bytes.count - 900), in http")
                    #expect(try second.read(ResourceListing.self, "/resources").total == total)
                }
                expectWhole(try second.get("/a.mp4"), film)
                #expect(stage.origin.requestCount("/a.mp4") == 2)
            }
        }

        @Test func withoutTheTokenNoSecretIsTold() async throws {
            try await scenario { stage in
                for path in ["/a.mp4", "/b.mp4?token=abcdef"] {
                    stage.origin.serve(path, film)
                    expectWhole(try stage.get(path), film)
                }
                let open = try stage.control("GET", "/archive/list", .nothing),
                    whole = try stage.control("GET", "/archive/list")
                #expect(!open.text.contains("abcdef") && open.text.contains("\"left_out\":1"))
                #expect(whole.text.contains("abcdef") && whole.text.contains("\"left_out\":0"))
                #expect(!(try stage.control("GET", "/archive", .nothing)).body.contains("token=abcdef".utf8))
                expectRefusal(try stage.control("POST", "/archive/wanted", .nothing, body: ""), 401)
                expectRefusal(try stage.control("GET", "/archive?generations=x"), 400, naming: "generations are")
                expectRefusal(
                    try stage.control("POST", "/archive/wanted?beside=-1", body: ""), 400, naming: "beside is a number")
            }
        }
    }
}
