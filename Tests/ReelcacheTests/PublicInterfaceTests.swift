import Foundation
import Reelcache
import TestSupport
import Testing

/// What a program of somebody else's can write: this file sees what is public, and nothing that is internal.
@Suite(.timeLimit(.minutes(10))) struct PublicInterfaceTests {
    @Test func downloadsAreLimitedWhileTheCacheIsOpen() async throws {
        try await cacheStory { stage in
            try stage.cache.setMaxDownloads(2)
            try stage.cache.setDownloadRate(1_000_000)
            #expect(stage.cache.downloads.maxActive == 2 && stage.cache.downloads.bytesPerSecond == 1_000_000)
            try stage.cache.setDownloadRate(nil)
            #expect(stage.cache.downloads.bytesPerSecond == nil)
        }
    }

    @Test func whatAProgramShowsCanBeMadeByItsTests() {
        let totals = CacheDownloads.Totals(waiting: 1, bytes: 25, total: 100)
        #expect(totals.waiting == 1 && totals.fractionCompleted == 0.25)
        let damage = CacheValidation.Damage(urlText: "https://example.org/a.mp4", ranges: [0..<100])
        #expect(!CacheValidation(resources: 1, damaged: [damage]).isSound && CacheValidation().isSound)
        let download = Download(id: 1, url: "https://example.org/a.mp4", state: .completed)
        #expect(DownloadEvent.completed(download, localURL: nil) != .failed(.downloadCancelled(download)))
    }
}
