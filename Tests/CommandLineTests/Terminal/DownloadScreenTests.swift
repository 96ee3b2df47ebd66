import Downloads
import Foundation
import ReelcacheCLI
import TestSupport
import Testing

/// What downloads look like on a terminal, and line by line.
@Suite struct DownloadScreenTests {
    private func screen(_ width: Int, _ height: Int = 24, isUnicode: Bool = true) -> DownloadScreen {
        DownloadScreen(width: width, height: height, isUnicode: isUnicode, now: 1_000)
    }

    private func three() throws -> [Download] {
        try [
            .running(1, "one.mp4", 45_000_000, of: 100_000_000, rate: 5_000_000, eta: 11),
            .running(2, "episode-two.mp4", 0, of: nil),
            .sample(3, "three.mp4", .waiting) {
                ($0.message, $0.retryDate, $0.total) = ("503 from the origin", at(1_004), 10)
            },
            .sample(4, "four.mp4", .completed) { ($0.bytes, $0.total) = (100_000_000, 100_000_000) },
            .sample(5, "five.mp4", .failed) { $0.message = "404" },
        ]
    }

    @Test func eachThatRunsHasABar() throws {
        #expect(
            try screen(90).lines(three()) == [
                "one.mp4          ███████████▒░░░░░░░░░░░░░░   45 %   45.0 MB of 100 MB  5.00 MB/s     0:11",
                "episode-two.mp4" + String(repeating: " ", count: 48) + "0 bytes",
                "three.mp4: 503 from the origin; next attempt in 4 s",
                "1 of 5 completed, 2 downloading, 1 waiting, 1 failed, 145 MB, 5.00 MB/s",
            ])
    }

    @Test func narrowTerminalShowsTheNextAttempt() throws {
        #expect(try screen(40).lines(three()).contains { $0.hasSuffix("…rigin; next attempt in 4 s") })
    }

    @Test func withoutBlocksThereIsASCII() throws {
        let lines = try screen(90, isUnicode: false).lines([
            .running(1, "one.mp4", 50, of: 100, rate: 5, eta: 10), .sample(2, "two.mp4", .waiting),
        ])
        #expect(lines.first?.contains("##########") == true && lines.first?.contains("..........") == true, "\(lines)")
        #expect(lines.allSatisfy { $0.allSatisfy(\.isASCII) })
    }

    @Test func oneAloneNeedsNoSum() throws {
        #expect(try screen(90).lines([.running(1, "one.mp4", 50, of: 100)]).count == 1)
        #expect(try screen(90).lines([.sample(1, "one.mp4", .waiting)]) == ["0 of 1 completed, 1 waiting, 0 bytes"])
        #expect(
            try screen(90).lines([.sample(1, "one.mp4", .paused) { ($0.bytes, $0.total) = (5, 10) }]) == [
                "0 of 1 completed, 1 paused; 50 %, 5 bytes of 10 bytes"
            ])
    }

    @Test(arguments: Array(1...140)) func noLineIsTooLong(width: Int) throws {
        var reports = try three()
        reports += try [
            .running(
                6, String(repeating: "long", count: 50) + ".mp4", 999_900_000_000, of: 999_990_000_000, rate: 999_000,
                eta: 360_000),
            .running(7, "%E6%98%A0%E7%94%BB%E3%81%AE%E9%95%B7%E3%81%84%E5%90%8D%E5%89%8D.mp4", 1, of: 2),
        ]
        for isUnicode in [true, false] {
            let lines = screen(width, isUnicode: isUnicode).lines(reports, note: String(repeating: "note", count: 50))
            #expect(lines.allSatisfy { $0.columns <= width }, "\(lines)")
            if width >= 30 {
                #expect(
                    lines.allSatisfy { !$0.isEmpty } && lines[0].hasPrefix("one.mp4 ") && lines[0].contains("45 %"),
                    "\(lines)")
            }
        }
    }

    @Test func whereThereIsLittleRoomTheBarsGo() throws {
        let reports = try (1...9).map { try Download.running($0, "\($0).mp4", $0, of: 10) }
        for height in 1...12 {
            let lines = screen(80, height).lines(reports, note: height > 2 ? "note" : nil)
            #expect(lines.count == min(height, height > 2 ? 11 : 10), "\(lines)")
            #expect(lines.last?.hasPrefix("0 of 9 completed, 9 downloading") == true)
            #expect(
                lines.last?.contains("\(9 - (lines.count - (height > 2 ? 2 : 1))) not shown") == (lines.count < 11),
                "\(height): \(lines)")
        }
    }

    @Test func whatOriginsSayIsShownAndNotDone() throws {
        let report = try Download.sample(1, "x", .waiting) {
            ($0.fileName, $0.message, $0.retryDate) = ("\u{1B}[31mred.mp4", "no\u{1B}c\nway", at(1_000))
        }
        for line in try screen(100).lines([report, .running(2, "two.mp4", 1, of: 2)]) + [
            #require(report.line(now: 1_000))
        ] {
            #expect(
                !line.unicodeScalars.contains { [.control, .format].contains($0.properties.generalCategory) }, "\(line)"
            )
        }
    }

    @Test func secretsAreMaskedBeforeALineIsCut() throws {
        let reports = try [
            Download.running(1, "a.mp4;jsessionid=abc", 1, of: 2),
            .sample(2, "b", .waiting) { ($0.message, $0.retryDate) = ("https://a/?token=abc", at(1_000)) },
        ]
        var screen = screen(100)
        #expect(screen.lines(reports).filter { $0.contains("abc") }.count == 2)
        screen.mask = .standard
        let lines = screen.lines(reports)
        #expect(!lines.contains { $0.contains("abc") } && lines.filter { $0.contains("***") }.count == 2, "\(lines)")
    }

    // MARK: Line by line

    @Test func eachStateIsALine() throws {
        func line(_ state: Download.State, _ change: (inout Download) -> Void = { _ in }) throws -> String? {
            try Download.sample(1, "one.mp4", state) {
                ($0.bytes, $0.total, $0.message) = (34_500_000, 100_000_000, "503 from the origin")
                change(&$0)
            }.line(now: 1_000)
        }
        #expect(try line(.waiting) == nil)
        #expect(
            try line(.waiting) { $0.retryDate = at(1_004) }
                == "waiting one.mp4: 503 from the origin; next attempt in 4 s")
        #expect(
            try line(.waiting) { $0.retryDate = at(999) }
                == "waiting one.mp4: 503 from the origin; next attempt now")
        #expect(try line(.downloading) == "downloading one.mp4, 34.5 MB of 100 MB so far")
        #expect(try line(.downloading) { $0.bytes = 0 } == "downloading one.mp4")
        #expect(try line(.paused) == "paused one.mp4, 34.5 MB of 100 MB")
        #expect(try line(.completed) { $0.bytes = 100_000_000 } == "completed one.mp4, 100 MB")
        #expect(try line(.failed) == "failed http://a/one.mp4: 503 from the origin")
        #expect(try line(.cancelled) == "cancelled http://a/one.mp4")
    }

    @Test func newsAreWorthALineWhereTheStateChanges() throws {
        var followed = FollowedDownloads(try [.sample(1, "one.mp4", .waiting), .sample(2, "two.mp4", .waiting)])
        #expect(try followed.note(.sample(1, "one.mp4", .waiting)) == .nothing)
        #expect(try followed.note(.running(1, "one.mp4", 0, of: 10)) == .state)
        #expect(try followed.note(.running(1, "one.mp4", 5, of: 10)) == .progress)
        #expect(
            try followed.note(
                .sample(1, "one.mp4", .waiting) { ($0.message, $0.retryDate) = ("503", at(1_004)) })
                == .state)
        #expect(
            try followed.note(
                .sample(1, "one.mp4", .waiting) { ($0.message, $0.retryDate) = ("503", at(1_008)) })
                == .state)
        #expect(!followed.haveAllEnded)
        #expect(try followed.note(.sample(1, "one.mp4", .completed)) == .state)
        #expect(try followed.note(.sample(2, "two.mp4", .failed)) == .state && followed.haveAllEnded)
        // Somebody has it tried again.
        #expect(try followed.note(.sample(2, "two.mp4", .waiting)) == .state && !followed.haveAllEnded)
        #expect(followed.open.map(\.id) == [2] && followed.all.map(\.id) == [1, 2])
    }

    @Test func sumsAreKeptWhileNewsCome() throws {
        var random = SplitMix64.forTest("sumsAreKeptWhileNewsCome")
        var followed = FollowedDownloads()
        for _ in 0..<2000 {
            let id = Int64.random(in: 1...20, using: &random)
            let state = try #require(Download.State.allCases.randomElement(using: &random))
            let (bytes, total) = (
                Int64.random(in: 0...100, using: &random), Bool.random(using: &random) ? Int64(100) : nil
            )
            let retryAt = Bool.random(using: &random) ? Int64(1_004) : nil
            let report = try Download.sample(id, "\(id).mp4", state) {
                ($0.bytes, $0.total, $0.bytesPerSecond, $0.retryDate) = (
                    bytes, total, bytes, retryAt.map(at)
                )
            }
            if Int.random(in: 0..<5, using: &random) == 0 { followed.forget(id) } else { _ = followed.note(report) }
            let all = followed.all
            #expect(followed.totals == FollowedTotals(all) && followed.haveAllEnded == all.allSatisfy(\.state.hasEnded))
            #expect(screen(90, 40).lines(followed) == screen(90, 40).lines(FollowedDownloads(all)))
        }
    }

    @Test func sumsLeaveOutWhatIsNotWaitedFor() throws {
        var totals = FollowedTotals(
            try [
                .running(1, "a", 10, of: 100, rate: 9), .sample(2, "b", .failed) { $0.bytes = 5 },
                .sample(3, "c", .completed) { ($0.bytes, $0.total) = (20, 20) },
            ])
        #expect(
            totals.bytes == 30 && totals.total == 120 && totals.rate == 9 && totals.eta == 10 && totals[.failed] == 1
                && totals.count == 3)
        totals = FollowedTotals(try [.running(1, "a", 10, of: nil, rate: 9), .running(2, "b", 10, of: 100, rate: 9)])
        #expect(totals.total == nil && totals.eta == nil && totals.rate == 18)
    }

    @Test(arguments: [
        (0, "0:00"), (7, "0:07"), (245, "4:05"), (3600, "1:00:00"), (5025, "1:23:45"), (200_000, "2 d"), (-1, "0:00"),
    ])
    func timesAreLikeAClock(seconds: Int64, text: String) {
        #expect(ProgressText.time(seconds) == text)
    }

    // MARK: Tables

    @Test func theQueueIsATable() throws {
        var reports = try three()
        reports[0].priority = .high
        let lines = DownloadTable(width: nil, isUnicode: true, now: 1_000).list(reports)
        #expect(
            lines == [
                "ID  STATE        PRIORITY  PROGRESS              RATE      ETA  URL",
                " 1  downloading  high      45 % of 100 MB   5.00 MB/s     0:11  http://a/one.mp4",
                " 2  downloading  normal    0 bytes                              http://a/episode-two.mp4",
                " 3  waiting      normal    0 % of 10 bytes                      http://a/three.mp4",
                "    503 from the origin; next attempt in 4 s",
                " 4  completed    normal    100 MB                               http://a/four.mp4",
                " 5  failed       normal    0 bytes                              http://a/five.mp4",
                "    404",
            ])
        // What tells least goes first, then URLs are cut inside; reasons are folded.
        #expect(
            DownloadTable(width: 60, isUnicode: true, now: 1_000, isLong: true).list(Array(reports.prefix(3))) == [
                "ID  STATE        PROGRESS         URL",
                " 1  downloading  45 % of 100 MB   http://a/one.mp4",
                " 2  downloading  0 bytes          http://a/episode-two.mp4",
                " 3  waiting      0 % of 10 bytes  http://a/three.mp4",
                "    503 from the origin; next attempt in 4 s",
            ])
        #expect(
            DownloadTable(width: 30, isUnicode: true, now: 1_000, isLong: true).list(Array(reports.prefix(2)))[2]
                == " 2  downloading  http…-two.mp4")
        // On a terminal, what people call them.
        reports[1].title = "Episode 2: Bridges"
        #expect(
            DownloadTable(width: 60, isUnicode: true, now: 1_000).list(Array(reports.prefix(2))) == [
                "ID  STATE        PROGRESS            ETA  NAME",
                " 1  downloading  45 % of 100 MB     0:11  one.mp4",
                " 2  downloading  0 bytes                  Episode 2: Bridges",
            ])
        for width in [1, 5, 20, 30, 40, 50] {
            let lines = DownloadTable(width: width, isUnicode: true, now: 1_000).list(reports)
            #expect(width < 30 || lines.allSatisfy { $0.columns <= width }, "\(lines)")
        }
        #expect(DownloadTable(width: nil, isUnicode: true, now: 1_000).list([]).isEmpty)
    }

    @Test func theHistoryIsATable() throws {
        let reports = try [
            Download.sample(2, "two.mp4", .failed) {
                ($0.bytes, $0.started, $0.finished, $0.message, $0.category) = (
                    500_000, at(2_000), at(2_005), "404", "news"
                )
            },
            Download.sample(1, "one.mp4", .completed) {
                ($0.bytes, $0.started, $0.finished, $0.message) = (100_000_000, at(1_000), at(1_020), "old")
            },
        ]
        #expect(
            DownloadTable(width: nil, isUnicode: true, now: 3_000).history(reports, date: { "at \($0)" }) == [
                "FINISHED          OUTCOME         SIZE     TIME       RATE  CATEGORY  URL",
                "at 2005           failed        500 kB     0:05   100 kB/s  news      http://a/two.mp4",
                "                  404",
                "at 1020           completed     100 MB     0:20  5.00 MB/s            http://a/one.mp4",
            ])
    }

    @Test(arguments: [
        ("abc", 3), ("映画", 4), ("e\u{301}", 1), ("\u{1F600}", 2), ("\u{1F468}\u{200D}\u{1F469}", 2), ("", 0),
    ])
    func columnsAreThoseOfATerminal(text: String, columns: Int) {
        #expect(text.columns == columns)
    }

    @Test func whatIsCutSaysSo() {
        #expect(
            "film.mp4".cut(toColumns: 8, isUnicode: true) == "film.mp4"
                && "film.mp4".cut(toColumns: 5, isUnicode: true) == "film…")
        #expect(
            "映画映画".cut(toColumns: 6, isUnicode: false) == "映画~" && "ab".cut(toColumns: 1, isUnicode: false) == "~"
                && "ab".cut(toColumns: 0, isUnicode: false) == "")
    }
}

private extension DownloadScreen {
    func lines(_ reports: [Download], note: String? = nil) -> [String] {
        lines(FollowedDownloads(reports), note: note)
    }
}

private func at(_ seconds: Int64) -> Date { Date(seconds: seconds) }
