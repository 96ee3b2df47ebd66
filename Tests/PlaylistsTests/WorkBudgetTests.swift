import CachePolicy
import HTTPModel
import Testing

@testable import Playlists

@Suite struct WorkBudgetTests {
    private static let playlist =
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + String(repeating: "#EXTINF:4,\na.ts\n", count: 100)

    @Test func aTextPaysForItself() throws {
        let text = bytes(Self.playlist), budget = WorkBudget(bytes: text.count)
        _ = try HLSPlaylist(text, at: OriginURL("http://h/a.m3u8"), within: budget)
        #expect((text.count...8 * text.count).contains(budget.steps))
    }

    @Test func whatIsSpentSaysSoInOneLine() throws {
        let budget = WorkBudget(bytes: 10)
        try budget.take(WorkBudget.freeSteps + 10 * WorkBudget.stepsPerByte)
        #expect(throws: PlaylistError(.tooLarge, "the playlist takes more work than its 10 bytes allow")) {
            try budget.take()
        }
        #expect(throws: FeedError(.tooLarge, "the feed takes more work than its 10 bytes allow")) {
            try budget.take(ofFeed: 1)
        }
        let other = WorkBudget(bytes: 10)
        #expect(throws: PlaylistError(.tooLarge, "the playlist takes more memory than its 10 bytes allow")) {
            try other.make(WorkBudget.freeMemory + 10 * WorkBudget.memoryPerByte + 1)
        }
    }

    /// As when the last player that waits for it leaves.
    @Test func workThatIsCancelledEnds() throws {
        let text = bytes(Self.playlist), base = OriginURL("http://h/a.m3u8"), budget = WorkBudget(bytes: text.count)
        let playlist = try HLSPlaylist(text, at: base, within: budget)
        budget.cancel()
        #expect(failure { _ = try HLSPlaylist(text, at: base, within: budget) }?.kind == .cancelled)
        #expect(
            failure { _ = try playlist.edits(for: .local, at: OriginURL("http://x/"), within: budget) }?.kind
                == .cancelled)
        #expect(failure { _ = try playlist.segments(within: budget) }?.kind == .cancelled)
        #expect(failure { _ = try MPD(bytes("<MPD/>"), at: base, within: budget) }?.kind == .cancelled)
        #expect(throws: FeedError.self) {
            try Feed(reading: bytes("<rss><channel/></rss>"), at: base, within: budget)
        }
        #expect(throws: FeedError.self) { try OPML(reading: bytes("<opml><body/></opml>"), within: budget) }
    }

    #if DEBUG
    /// Whoever waits for a lock would wait for a text.
    @Test func noStepIsTakenUnderALock() async {
        await #expect(processExitsWith: .failure) {
            try CountedMutex(0).withLock { _ in try WorkBudget(bytes: 1).take() }
        }
    }
    #endif
}
