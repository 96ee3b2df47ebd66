import Downloads
import Testing

@testable import ReelcacheCLI

/// Downloads of playlists as people see them.
@Suite struct PresentationTextTests {
    private func film(_ state: Download.State, _ segments: Int64, of total: Int64?) throws -> Download {
        try .sample(1, "film.m3u8", state) {
            ($0.bytes, $0.segments, $0.totalSegments) = (34_500_000, segments, total)
            if state == .completed { ($0.total, $0.message) = (34_500_000, "1080p 4.0 Mbit/s, audio en") }
        }
    }

    @Test func segmentsAreCounted() throws {
        #expect(try film(.downloading, 120, of: 300).percent == 40)
        #expect(try film(.downloading, 120, of: 300).amount == "120/300 segments, 34.5 MB")
        #expect(try film(.downloading, 120, of: nil).amount == "120 segments, 34.5 MB")
        #expect(try film(.downloading, 120, of: nil).percent == nil)
        #expect(try film(.downloading, 1, of: 0).percent == 100)
    }

    @Test func eachStateIsALine() throws {
        #expect(
            try film(.downloading, 120, of: 300).line(now: 0)
                == "downloading film.m3u8, 120/300 segments, 34.5 MB so far")
        #expect(try film(.paused, 120, of: 300).line(now: 0) == "paused film.m3u8, 120/300 segments, 34.5 MB")
        #expect(
            try film(.completed, 300, of: 300).line(now: 0)
                == "completed film.m3u8, 34.5 MB in 300 segments: 1080p 4.0 Mbit/s, audio en")
    }

    @Test func theTableHasSegmentsAndWhatIsToBeSaid() throws {
        let table = DownloadTable(width: nil, isUnicode: true, now: 0)
        let running = table.list([try film(.downloading, 120, of: 300)])
        #expect(running.contains { $0.contains("40 %, 120/300 segments") }, "\(running)")
        let ended = table.list([try film(.completed, 300, of: 300)])
        #expect(ended.contains { $0.contains("1080p 4.0 Mbit/s, audio en") }, "\(ended)")
    }

    @Test func barsGoBySegments() throws {
        let screen = DownloadScreen(width: 120, height: 10, isUnicode: true, now: 0)
        let followed = FollowedDownloads([try film(.downloading, 150, of: 300)])
        let half = screen.lines(followed)
        #expect(half.first?.contains("50 %") == true && half.first?.contains("█") == true, "\(half)")
    }
}
