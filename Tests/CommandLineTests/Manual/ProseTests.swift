import Testing

@testable import ReelcacheCLI

@Suite struct ProseTests {
    @Test func paragraphsAndExamplesAreBlocks() {
        let prose = Prose("One\nparagraph.\n\nExamples:\n\n  reelcache ls\n  reelcache ls --json\n\nThe end.")

        #expect(
            prose.blocks == [
                .paragraph([.text("One paragraph.")]), .paragraph([.text("Examples:")]),
                .literal(["reelcache ls", "reelcache ls --json"]), .paragraph([.text("The end.")]),
            ])
    }

    @Test(
        arguments: [
            ("plain", [.text("plain")]),
            ("use --all here", [.text("use "), .code("--all"), .text(" here")]),
            ("(--no-pin)", [.text("("), .code("--no-pin"), .text(")")]),
            ("write `max_size: 1GB`.", [.text("write "), .code("max_size: 1GB"), .text(".")]),
            ("a -- b", [.text("a -- b")]), ("well--known", [.text("well--known")]),
        ] as [(String, [Prose.Span])])
    func codeIsFound(text: String, spans: [Prose.Span]) {
        #expect(Prose.spans(text) == spans)
    }

    @Test(arguments: [
        ("a \\ b", "a \\e b"), ("say \"yes\"", "say \\(dqyes\\(dq"), ("read-ahead", "read-ahead"),
        ("use -o FILE", "use \\-o FILE"), ("~/.cache", "\\(ti/.cache"), ("Grüße", "Gr\\[u00FC]\\[u00DF]e"),
    ])
    func proseIsEscaped(text: String, roff: String) { #expect(Mdoc.escaped(text) == roff) }

    @Test(arguments: [
        ("--max-size", "\\-\\-max\\-size"), ("'abc'", "\\(aqabc\\(aq"), ("Li", "\\&Li"), (".", "\\&."),
        ("a word", "\"a word\""),
    ])
    func wordsOfAMacroAreEscaped(text: String, roff: String) { #expect(Mdoc.argument(text) == roff) }

    @Test func noLineOfTextBecomesAMacro() {
        var page = Mdoc(name: "a", section: 1, description: "b", edition: Edition(version: "1", date: "May 1, 2026"))
        page.prose(".Sh is text\n\n  .hidden\n  'quoted'")
        #expect(page.text.hasSuffix("\\&.Sh is text\n.Bd -literal -offset indent\n\\&.hidden\n\\(aqquoted\\(aq\n.Ed\n"))
    }
}
