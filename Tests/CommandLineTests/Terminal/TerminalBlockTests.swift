import ReelcacheCLI
import TestSupport
import Testing

@Suite struct TerminalBlockTests {
    private func drawn(_ write: (inout TerminalBlock, inout TerminalScreen) -> Void) -> [String] {
        var (block, screen) = (TerminalBlock(), TerminalScreen())
        write(&block, &screen)
        return screen.lines
    }

    @Test func linesTakeThePlaceOfThoseBefore() {
        #expect(
            drawn { block, screen in
                screen.take("before\r\n".utf8)
                screen.take(block.show(["one", "two", "three"], columns: 80).utf8)
                screen.take(block.show(["1", "2"], columns: 80).utf8)
            } == ["before", "1", "2"])
        #expect(
            drawn { block, screen in
                for lines in [["a"], ["a", "b"], ["longer", "b", "c"], ["x"]] {
                    screen.take(block.show(lines, columns: 80).utf8)
                }
            } == ["x"])
    }

    @Test func whatIsSaidStandsAboveThem() {
        #expect(
            drawn { block, screen in
                screen.take("$ reelcache\r\n".utf8)
                screen.take(block.show(["one", "two"], columns: 80).utf8)
                screen.take(block.clear(columns: 80).utf8)
                screen.take("completed one\r\n".utf8)
                screen.take(block.show(["two"], columns: 80).utf8)
            } == ["$ reelcache", "completed one", "two"])
        #expect(
            drawn { block, screen in
                screen.take(block.show(["one", "two"], columns: 80).utf8)
                screen.take(block.clear(columns: 80).utf8)
                screen.take(block.clear(columns: 80).utf8)
            } == [])
    }

    // MARK: Another width

    private static let wide = [
        "film.mp4  ########################  50 %", "show.mp4  ############  25 %", "0 of 2 completed",
    ]
    private static let narrow = ["film.mp4  50 %", "show.mp4  25 %", "0 of 2 done"]

    /// A terminal that breaks lines anew, from 60 columns on.
    private func resized(to widths: [Int], _ end: (inout TerminalBlock, Int) -> String) -> [String] {
        var (block, screen) = (TerminalBlock(), TerminalScreen(columns: 60))
        screen.take("$ reelcache\r\ncompleted one\r\n".utf8)
        screen.take(block.show(Self.wide, columns: 60).utf8)
        for width in widths {
            screen.resize(columns: width)
            screen.take(block.show(width < 60 ? Self.narrow : Self.wide, columns: width).utf8)
        }
        screen.take(end(&block, widths.last ?? 60).utf8)
        return screen.lines
    }

    @Test(arguments: [[20], [20, 60], [15, 30, 60, 16], [59], [60, 60], [12]])
    func windowThatIsMadeNarrowerAndWiderKeepsNothingOfFormerLines(widths: [Int]) {
        // A title of a command may be broken, too: that is the terminal's.
        let before = ["$ reelcache", "completed one"].filter { $0.count <= (widths.last ?? 60) }
        let drawn = resized(to: widths) { block, columns in block.show(["done"], columns: columns) }
        #expect(drawn.suffix(1) == ["done"] && drawn.count == (before.count == 2 ? 3 : 4), "\(drawn)")
        #expect(!drawn.contains { $0.contains("%") || $0.contains("#") || $0.contains("of 2") }, "\(drawn)")
        let cleared = resized(to: widths) { block, columns in block.clear(columns: columns) }
        #expect(cleared.count == (before.count == 2 ? 2 : 3) && !cleared.contains { $0.contains("%") }, "\(cleared)")
    }

    /// It cuts lines off: to go up further would clear what is not of this.
    @Test func terminalThatBreaksNothingLosesNoLineAbove() {
        var block = TerminalBlock(reflows: false)
        _ = block.show(Self.wide, columns: 60)
        #expect(block.show(Self.narrow, columns: 20).hasPrefix("\r\u{1B}[2A"))
    }
}
