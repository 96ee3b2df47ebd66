import Administration
import CachePolicy
import ControlAPI
import Foundation
import Reelcache
import TestSupport
import Testing

private let path = "/film.mp4"
private let film = Media(seed: 260, size: 5_000_000)

extension Scenarios {
    /// The file of a download is copied while it comes.
    @Suite struct S16_GrowingFileTests {
        private func proxy(_ stage: Stage) throws -> RunningProxy {
            try #require(RunningProxy(cacheDirectory: stage.cache))
        }

        private func url(_ stage: Stage) throws -> OriginURL { try OriginURL(url: stage.origin.url(path)) }

        @Test(arguments: [1, 4]) func whatHasComeIsToldOnceAndStays(connections: Int) async throws {
            try await scenario { stage in
                let directory = try TemporaryDirectory()
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.stallAfter = 1_000_000 }
                let download = try stage.download(path, connections: connections)
                try download.wait(forBytes: 900_000)
                let file = try FilePlacement(directory: directory.path).begin()
                var (source, told, isReleased): (Int32, [Range<Int64>], Bool) = (-1, [], false)
                defer { close(source) }
                try proxy(stage).withGrowingFile(url(stage), isWanted: { true }) { lent, news in
                    if source < 0 { source = try UnfinishedFile.open(lent.path) }
                    #expect(lent.length == film.size && lent.isHeld())
                    for range in news {
                        #expect(!told.contains { $0.overlaps(range) })
                        _ = try file.copy(from: source, range) { _ in true }
                    }
                    told += news
                    let count = told.reduce(0) { $0 + $1.count }
                    if count > 900_000, !isReleased {
                        #expect(count < film.size)
                        isReleased = true
                        stage.origin.release(path)
                    }
                    return count < film.size
                }
                _ = try download.complete()
                #expect(try file.publish(as: directory.file("film.mp4"), replaces: false))
                #expect(try Data(contentsOf: URL(fileURLWithPath: directory.file("film.mp4"))) == Data(film.allBytes))
            }
        }

        @Test func whatIsRemovedMeanwhileIsWorthNothing() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.stallAfter = 1_000_000 }
                let download = try stage.download(path)
                try download.wait(forBytes: 900_000)
                let (proxy, url) = (try proxy(stage), try url(stage))
                let remove: (LentFile, [Range<Int64>]) throws -> Bool = { _, news in
                    if news.isEmpty { _ = try stage.control("DELETE", "/resources?" + stage.parameter(path)) }
                    return true
                }
                let error = #expect(throws: ControlError.self) {
                    try proxy.withGrowingFile(url, isWanted: { true }, remove)
                }
                #expect(error?.description.contains("was removed or replaced meanwhile") == true)
                download.stop()
                stage.origin.release(path)
            }
        }

        /// Also when all of it has been told: it may still be copied.
        @Test(arguments: [true, false]) func whatIsFoundDamagedMeanwhileIsWorthNothing(isRepaired: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                _ = try stage.download(path).complete()
                var told = 0
                let damage: (LentFile, [Range<Int64>]) throws -> Bool = { lent, news in
                    told += news.reduce(0) { $0 + $1.count }
                    guard !news.isEmpty else { return true }
                    let file = try FileHandle(forUpdating: URL(fileURLWithPath: lent.path))
                    try file.write(contentsOf: [1, 2, 3])
                    try file.close()
                    #expect(try stage.control("POST", "/verify?repair=\(isRepaired)").status == 200)
                    return true
                }
                let (proxy, url, end) = (try proxy(stage), try url(stage), ContinuousClock.now + .patience)
                #expect(throws: ControlError.self) {
                    try proxy.withGrowingFile(url, isWanted: { ContinuousClock.now < end }, damage)
                }
                #expect(told == film.size && ContinuousClock.now < end)
            }
        }

        @Test func whatIsNotThereIsNotLent() async throws {
            try await scenario { stage in
                let (proxy, url) = (try proxy(stage), try url(stage))
                let error = #expect(throws: ControlError.self) {
                    try proxy.withGrowingFile(url, isWanted: { true }) { _, _ in true }
                }
                #expect(error?.isNotCached == true)
            }
        }
    }
}
