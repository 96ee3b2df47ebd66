import ReelcacheCLI
import TestSupport
import Testing

@Suite struct KeyReaderTests {
    @Test(
        arguments: [
            ("q", [.character("q")]), ("jk", [.character("j"), .character("k")]), ("\u{1B}[A", [.up]),
            ("\u{1B}OB", [.down]), ("\u{1B}[5~\u{1B}[6~", [.pageUp, .pageDown]), ("\u{1B}[H\u{1B}[4~", [.home, .end]),
            ("\r\n", [.enter, .enter]), ("\u{C}", [.redraw]), ("\u{1B}OM", [.enter]),
            ("ä€😀", [.character("ä"), .character("€"), .character("😀")]),
            // Not known: nothing in it is a key.
            ("\u{1B}[1;5Cq", [.character("q")]), ("\u{1B}[<0;10;20Mq", [.character("q")]),
            ("\u{1B}xq", [.character("q")]),
            // Answers of the terminal: colours, its name, a private message.
            ("\u{1B}]11;rgb:1c1c/1c1c/1c1c\u{1B}\\q", [.character("q")]), ("\u{1B}]0;cry\u{7}q", [.character("q")]),
            ("\u{1B}P>|XTerm(370)\u{1B}\\q", [.character("q")]), ("\u{1B}_Gi=1;OK\u{1B}\\q", [.character("q")]),
            ("\u{1B}^c\u{1B}\u{1B}\\\u{1B}Xc\u{1B}\\q", [.character("q")]),
            // Too long for a key.
            ("\u{1B}[" + String(repeating: "1;", count: 100) + "rq", [.character("q")]),
            ("\u{1B}[" + String(repeating: "1;", count: 100) + "\u{1B}[Aq", [.up, .character("q")]),
            ("\u{0}\u{1}\u{7F}q", [.character("q")]),
            // Two Escapes: the first was a key.
            ("\u{1B}\u{1B}[A", [.escape, .up]),
            // Pasted: what it contains is not meant.
            ("\u{1B}[200~cyq\r\u{1B}[A\u{1B}[201~p", [.character("p")]),
            ("\u{1B}[200~\u{1B}[20\u{1B}\u{1B}[201~p", [.character("p")]),
        ] as [(String, [Key])])
    func keysAreRead(text: String, keys: [Key]) {
        var whole = KeyReader()
        #expect(whole.take(Array(text.utf8)) == keys)
        // The same, byte by byte.
        var reader = KeyReader()
        #expect(text.utf8.flatMap { reader.take([$0]) } == keys)
        #expect(!reader.isWaiting)
    }

    @Test func anEscapeByItselfIsAKeyAfterAPause() {
        var reader = KeyReader()
        #expect(reader.take([0x1B]).isEmpty && reader.isWaiting)
        #expect(reader.pause() == [.escape] && !reader.isWaiting && reader.pause().isEmpty)
        // A sequence that breaks off is nothing.
        #expect(reader.take(Array("\u{1B}[".utf8)).isEmpty && reader.pause().isEmpty)
        #expect(reader.take(Array("q".utf8)) == [.character("q")])
        // So is an answer, or Alt with one of the keys that begin one.
        #expect(reader.take(Array("\u{1B}]c".utf8)).isEmpty && reader.isWaiting && reader.pause().isEmpty)
        #expect(reader.take(Array("q".utf8)) == [.character("q")])
    }

    @Test(arguments: [[0xFF, 0xFE, 0x80], [0xC3, 0x28], [0xF0, 0x9F, 0x98, 0x41], [0xED, 0xA0, 0x80]] as [[UInt8]])
    func whatIsNotTextIsSkipped(bytes: [UInt8]) {
        var reader = KeyReader()
        #expect(reader.take(bytes + Array("q".utf8)).last == .character("q"))
    }

    @Test func garbageIsBounded() {
        var random = SplitMix64(seed: 17)
        var reader = KeyReader()
        for start in ["\u{1B}[", "\u{1B}]", "\u{1B}[200~"] {
            var reader = KeyReader()
            _ = reader.take(Array(start.utf8) + Array(repeating: UInt8(ascii: "1"), count: 100_000))
            #expect(reader.kept <= 32)
        }
        for _ in 0..<100_000 {
            _ = reader.take([UInt8(truncatingIfNeeded: random.next())])
            #expect(reader.kept <= 32)
        }
        _ = reader.take(Array("\u{1B}[201~".utf8))
        _ = reader.pause()
        #expect(reader.take(Array("q".utf8)) == [.character("q")])
    }
}
