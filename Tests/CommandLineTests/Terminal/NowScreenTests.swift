import Downloads
import Foundation
import ReelcacheCLI
import Testing

@testable import Activity

@Suite struct NowScreenTests {
    private static func play(_ id: Int64, _ title: String, _ change: (inout PlayReport) -> Void = { _ in })
        -> PlayReport
    {
        var play = PlayReport(
            id: id, player: "mpv 0.35.1", client: "127.0.0.1", title: title, url: "https://example.org/\(id).mp4",
            state: .active, since: 0)
        (play.position, play.length, play.rate) = (370, 1000, 5_000_000)
        (play.bytesFromCache, play.bytesFromOrigin, play.requests) = (75, 25, 1)
        change(&play)
        return play
    }

    private static let transfer = TransferReport(
        id: "0-1", urlText: "https://example.org/film.mp4?token=geheim", host: "example.org", reason: "uri-miss",
        phase: .receiving, purposes: [.play, .download], from: 0, to: 1000, received: 500, rate: 1_000_000, since: 0)

    private static func download(_ id: Int64, _ state: Download.State = .downloading) -> Download {
        var report = Download(id: id, url: "https://example.org/episode-\(id).mp3", added: Date(seconds: 0))
        (report.state, report.bytes, report.total) = (state, 300, 1000)
        if state == .downloading { (report.bytesPerSecond, report.eta) = (2_000_000, 65) }
        return report
    }

    private static var content: NowScreen.Content {
        var content = NowScreen.Content()
        content.plays = [
            play(1, "film.mp4"),
            play(2, "映画の題名がとても長いので切られる.mkv") {
                ($0.state, $0.rate) = (.buffered, nil)
                $0.segments = [.init(rendition: "1080p", number: 12, count: 300)]
            },
        ]
        content.transfers = [transfer]
        content.downloads = [download(7), download(8, .paused)]
        content.cache = (12_300_000_000, 20_000_000_000)
        content.hitRatio = 0.874
        return content
    }

    private static func list(_ content: NowScreen.Content, keys: [Key] = []) -> NowList {
        var list = NowList()
        list.update(plays: content.plays, transfers: content.transfers, downloads: content.downloads)
        for key in keys { _ = list.press(key) }
        return list
    }

    private static func text(
        _ content: NowScreen.Content, width: Int = 90, height: Int = 14, keys: [Key] = [], isUnicode: Bool = true
    ) -> [String] {
        NowScreen(width: width, height: height, isUnicode: isUnicode, mask: .standard)
            .lines(content, list(content, keys: keys)).map(\.text)
    }

    @Test func everythingIsOnOneScreen() {
        let lines = Self.text(Self.content, keys: [.down])
        #expect(lines.count == 14)
        #expect(lines[0].hasPrefix("reelcache   12.3 GB of 20.0 GB   87 % from the cache   5.00 MB/s to players"))
        #expect(lines[1] == "  STATE          AT       RATE  CACHED  PLAYER      PLAYS (2)")
        #expect(lines[2] == "▸ active       37 %  5.00 MB/s    75 %  mpv 0.35.1  film.mp4")
        #expect(lines[3].hasPrefix("  buffered   12/300               75 %  mpv 0.35.1  映画の題名"))
        #expect(lines[5].contains("TRANSFERS (1)"))
        #expect(lines[6].contains("receiving") && lines[6].contains("50 %") && lines[6].contains("play+download"))
        #expect(lines[8].contains("DOWNLOADS (2)"))
        #expect(lines[9].contains("downloading") && lines[9].contains("30 %") && lines[9].contains("1:05"))
        #expect(lines[10].contains("paused") && lines[10].contains("episode-8.mp3"))
        #expect(lines[13].hasPrefix("q quit  ? help"))
    }

    @Test func secretsAreMasked() {
        let lines = Self.text(Self.content, width: 200).joined(separator: "\n")
        #expect(lines.contains("token=***") && !lines.contains("geheim"))
    }

    @Test(arguments: [0, 1, 2, 5, 10, 20, 40, 41, 60, 79, 80, 200], [0, 1, 2, 3, 5, 8, 24, 100])
    func noLineIsWiderThanTheScreenAndNoneIsMissing(width: Int, height: Int) {
        for keys in [[], [.character("?")], [.end, .character("c")], [.character("x")]] as [[Key]] {
            let screen = NowScreen(width: width, height: height, isUnicode: true)
            let lines = screen.lines(Self.content, Self.list(Self.content, keys: keys))
            #expect(lines.count == height || height < 2 && lines.count <= height)
            for line in lines { #expect(line.text.columns <= width, "\(line.text)") }
        }
    }

    @Test func fortyColumnsShowWhatMatters() {
        let lines = Self.text(Self.content, width: 40)
        #expect(lines[2].contains("active") && lines[2].contains("37 %") && lines[2].contains("film.mp4"))
        #expect(lines[9].contains("downloading") && lines[9].contains("30 %") && lines[9].contains("mp3"))
    }

    @Test func withoutUnicodeThereIsNone() {
        let lines = Self.text(Self.content, keys: [.down, .down, .down, .down], isUnicode: false)
        #expect(lines[9].hasPrefix("> downloading") && lines[9].contains("###"))
        let others = lines.filter { !$0.contains("映") }.joined()
        #expect(others.unicodeScalars.allSatisfy { $0.isASCII })
    }

    @Test func whatIsSelectedIsInSight() {
        var content = NowScreen.Content()
        content.downloads = (1...50).map { Self.download($0) }
        content.hidden.downloads = 25
        let lines = Self.text(content, height: 10, keys: [.end])
        #expect(lines[1].contains("DOWNLOADS (75)"))
        #expect(lines[8].hasPrefix("▸ ") && lines[8].contains("episode-50.mp3"))
        #expect(Self.text(content, height: 10, keys: [.home])[2].contains("episode-1.mp3"))
    }

    @Test func nothingIsSaidToHappenWhereNothingDoes() {
        var content = NowScreen.Content()
        #expect(Self.text(content)[2] == "Connecting to the proxy." && Self.text(content)[0] == "reelcache")
        content.cache = (0, 1000)
        #expect(Self.text(content)[2].hasPrefix("Nothing is being played"))
    }

    @Test func troubleIsInTheLastLine() {
        var content = Self.content
        content.trouble = "the proxy has ended\u{1B}[2J"
        let lines = NowScreen(width: 60, height: 9, isUnicode: true).lines(content, Self.list(content))
        #expect(lines.last == ScreenLine("the proxy has ended\\u{1B}[2J", .warning))
    }

    @Test(
        arguments: [
            (10, [2, 3], [2, 3]), (10, [20, 2], [8, 2]), (10, [20, 30], [5, 5]), (3, [5, 5], [2, 1]), (0, [5], [0]),
            (-4, [5, 5], [0, 0]), (9, [1, 100, 2], [1, 6, 2]), (5, [], []),
        ] as [(Int, [Int], [Int])])
    func aShortListLeavesItsRestToTheOthers(room: Int, needs: [Int], shares: [Int]) {
        #expect(NowScreen.shares(of: room, needs) == shares)
    }

    /// On the lowest screens, one list is shown: that of the selected entry.
    @Test(arguments: [3, 4, 5, 6, 7, 8, 9, 10, 11], [20, 40, 90])
    func whatIsSelectedIsInSightOnALowScreen(height: Int, width: Int) {
        for count in 1...5 {
            let keys = Array(repeating: Key.down, count: count)
            let lines = Self.text(Self.content, width: width, height: height, keys: keys)
            #expect(lines.contains { $0.hasPrefix("▸ ") }, "\(lines)")
        }
    }

    @Test func twentyColumnsShowNames() {
        let lines = Self.text(Self.content, width: 20)
        #expect(lines[2].contains("active") && lines[2].contains("film.mp4"))
        #expect(lines[10].hasPrefix("  paused") && lines[10].contains("…"))
    }

    @Test func titlesAreTextAndNoURLs() {
        var content = NowScreen.Content()
        content.plays = [Self.play(1, "100%E6%98%A0 film;token=geheim")]
        let line = Self.text(content)[2]
        #expect(line.contains("100%E6%98%A0 film") && !line.contains("geheim"))
    }

    @Test func whatIsOldIsFaintAndKeysStillAnswer() {
        var content = Self.content
        content.trouble = "the proxy has ended"
        let screen = NowScreen(width: 80, height: 14, isUnicode: true)
        let lines = screen.lines(content, Self.list(content, keys: [.down, .character("p")]))
        #expect(lines.last == ScreenLine("select a download to pause; the proxy has ended", .warning))
        #expect(lines[1].style == .faint && lines[2].style == .selected && lines[3].style == .faint)
    }

    // MARK: Keys

    @Test func keysActOnWhatIsSelected() {
        var list = Self.list(Self.content)
        #expect(list.press(.character("p")) == nil && list.remark == "select a download to pause")
        #expect(list.press(.down) == nil && list.selected == .play(1))
        #expect(list.press(.character("P")) == .pin(true, url: "https://example.org/1.mp4"))
        #expect(list.press(.end) == nil && list.selected == .download(8))
        #expect(list.press(.character("r")) == .change(8, .resume))
        #expect(list.press(.character("k")) == nil && list.press(.character("p")) == .change(7, .pause))
        #expect(list.press(.character("u")) == .pin(false, url: "https://example.org/episode-7.mp3"))
        #expect(list.press(.escape) == nil && list.selected == nil)
        #expect(list.press(.up) == nil && list.selected == .download(8))
        #expect(list.press(.character("q")) == .quit)
    }

    @Test func cancellingAsks() {
        var list = Self.list(Self.content, keys: [.end])
        #expect(list.press(.character("c")) == nil && list.mode == .cancelling(8))
        #expect(list.press(.character("n")) == nil && list.remark == "not cancelled" && list.mode == .lists)
        #expect(list.press(.character("c")) == nil && list.press(.character("y")) == .change(8, .cancel))
        // What it is about ends meanwhile.
        _ = list.press(.character("c"))
        list.update(plays: [], transfers: [], downloads: [Self.download(7)])
        #expect(list.mode == .lists && list.press(.character("y")) == nil)
    }

    /// Paused ones come last, and may leave what is shown: the next key must not reach another download.
    @Test func whatLeavesBecauseItWasPausedLeavesNothingSelected() {
        var list = Self.list(Self.content, keys: [.end, .up])
        #expect(list.press(.character("p")) == .change(7, .pause))
        list.update(plays: [], transfers: [], downloads: [Self.download(8), Self.download(9)])
        #expect(list.selected == nil && list.press(.character("r")) == nil)
    }

    @Test func theSelectionStaysWithItsEntry() {
        var list = Self.list(Self.content, keys: [.down, .down])
        #expect(list.selected == .play(2))
        list.update(plays: [Self.play(9, "x"), Self.play(2, "y")], transfers: [], downloads: [])
        #expect(list.selected == .play(2))
        // Once it is gone, what is in its place.
        list.update(plays: [Self.play(9, "x")], transfers: [], downloads: [Self.download(7)])
        #expect(list.selected == .download(7))
        list.update(plays: [], transfers: [], downloads: [])
        #expect(list.selected == nil)
    }
}
