import ReelcacheCLI
import Testing

@Suite struct ScreenPainterTests {
    private var painter = ScreenPainter(hasStyles: true)

    @Test mutating func onlyWhatHasChangedIsWritten() {
        let first = painter.paint([ScreenLine("one"), ScreenLine("two")], columns: 20, rows: 5)
        #expect(first.hasPrefix("\u{1B}[m\u{1B}[H\u{1B}[2J") && first.contains("one") && first.contains("two"))
        #expect(painter.paint([ScreenLine("one"), ScreenLine("two")], columns: 20, rows: 5).isEmpty)
        #expect(painter.paint([ScreenLine("one"), ScreenLine("2")], columns: 20, rows: 5) == "\u{1B}[2;1H\u{1B}[K2")
        #expect(painter.paint([ScreenLine("one")], columns: 20, rows: 5) == "\u{1B}[2;1H\u{1B}[K")
    }

    @Test mutating func anotherSizeWritesEverything() {
        _ = painter.paint([ScreenLine("one")], columns: 20, rows: 5)
        #expect(painter.paint([ScreenLine("one")], columns: 30, rows: 5).contains("one"))
        #expect(painter.paint([ScreenLine("one")], columns: 30, rows: 5).isEmpty)
        painter.forget()
        #expect(painter.paint([ScreenLine("one")], columns: 30, rows: 5).contains("one"))
    }

    @Test mutating func linesBelowTheScreenAreLeftOut() {
        #expect(!painter.paint([ScreenLine("one"), ScreenLine("two")], columns: 9, rows: 1).contains("two"))
        #expect(painter.paint([ScreenLine("one")], columns: 0, rows: 0).contains("one") == false)
    }

    @Test mutating func stylesAreLeftOutWhereTheyAreNotWanted() {
        #expect(painter.paint([ScreenLine("x", .selected)], columns: 9, rows: 1).contains("\u{1B}[7mx\u{1B}[m"))
        var plain = ScreenPainter(hasStyles: false)
        #expect(plain.paint([ScreenLine("x", .selected)], columns: 9, rows: 1).hasSuffix("\u{1B}[1;1H\u{1B}[Kx"))
    }
}
