import Reelcache
import TestSupport
import Testing

@Suite struct TerminalBlockTests {
    private func drawn(_ write: (inout TerminalBlock, inout TerminalScreen) -> Void) -> [String] {
        var (block, screen) = (TerminalBlock(), TerminalScreen())
        write(&block, &screen)
        return screen.lines
    }

    @Test func linesTakeThePlaceOfThoseBefore() {
        #expect(drawn { block, screen in
            screen.take("before\r\n".utf8)
            screen.take(block.show(["one", "two", "three"]).utf8)
            screen.take(block.show(["1", "2"]).utf8)
        } == ["before", "1", "2"])
        #expect(drawn { block, screen in
            for lines in [["a"], ["a", "b"], ["longer", "b", "c"], ["x"]] { screen.take(block.show(lines).utf8) }
        } == ["x"])
    }

    @Test func whatIsSaidStandsAboveThem() {
        #expect(drawn { block, screen in
            screen.take("$ reelcache\r\n".utf8)
            screen.take(block.show(["one", "two"]).utf8)
            screen.take(block.clear().utf8)
            screen.take("completed one\r\n".utf8)
            screen.take(block.show(["two"]).utf8)
        } == ["$ reelcache", "completed one", "two"])
        #expect(drawn { block, screen in
            screen.take(block.show(["one", "two"]).utf8)
            screen.take(block.clear().utf8)
            screen.take(block.clear().utf8)
        } == [])
    }
}
