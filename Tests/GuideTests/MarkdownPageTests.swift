import Testing

/// How pages are read.
@Suite struct MarkdownPageTests {
    @Test func blocksAreFoundWithTheirLanguagesLinesAndMarkers() {
        let page = MarkdownPage(
            """
            # Title

            ```sh
            one
              two
            ```
            <!-- run: proxy=no, fails -->

            ````console
            ```
            ````
            - item

              ```sh
              three \\
                four
              ```

            ```
            plain
            ```
            """)
        #expect(
            page.blocks == [
                .init(language: "sh", line: 4, text: "one\n  two\n", marker: nil),
                .init(language: "console", line: 10, text: "```\n", marker: "proxy=no, fails"),
                .init(language: "sh", line: 15, text: "three \\\n  four\n", marker: nil),
                .init(language: "", line: 20, text: "plain\n", marker: nil),
            ])
    }

    @Test func markerIsForTheBlockRightAfterIt() {
        let page = MarkdownPage("<!-- run: fails -->\nText.\n\n```sh\na\n```\n\n<!-- run: packages -->\n```sh\nb\n```")
        #expect(page.blocks.map(\.marker) == [nil, "packages"])
    }

    @Test func linksAreFoundOutsideOfCode() {
        let page = MarkdownPage(
            """
            See [one](a.md#x), ![two](b.svg "title") and `[none](c.md)`; a [long
            one](d.md).
            <img src="e.svg"> <source srcset="f.svg">

            ```sh
            [none](g.md)
            ```
            [ref]: h.md
            """)
        #expect(
            page.links == [
                .init(target: "a.md#x", line: 1), .init(target: "b.svg", line: 1), .init(target: "d.md", line: 2),
                .init(target: "e.svg", line: 3), .init(target: "f.svg", line: 3), .init(target: "h.md", line: 8),
            ])
    }

    @Test(arguments: [
        ("Title", "title"), ("What it does", "what-it-does"), ("`GET /api/v1/cache`", "get-apiv1cache"),
        ("Who's there? (A, B)", "whos-there-a-b"), ("read-ahead & more", "read-ahead--more"),
        ("[Link](a.md) here", "link-here"), ("Grüße_1", "grüße_1"),
    ])
    func anchorIsThatOfGitHub(heading: String, anchor: String) {
        #expect(MarkdownPage.anchor(heading) == anchor)
    }

    @Test func headingsThatAreAlikeHaveNumbers() {
        let page = MarkdownPage("# A\n## A\n# B #\n<a id=\"c\"></a>\n```\n# D\n```\n### A")
        #expect(page.anchors == ["a", "a-1", "a-2", "b", "c"])
        #expect(page.headings.map(\.line) == [1, 2, 3, 8])
    }

    @Test(
        arguments: [
            (nil, .standard), ("proxy=no", .here(proxyRuns: false, fails: false, showsMore: false)),
            ("fails", .here(proxyRuns: true, fails: true, showsMore: false)),
            ("fails, proxy=no", .here(proxyRuns: false, fails: true, showsMore: false)),
            ("shows=more", .here(proxyRuns: true, fails: false, showsMore: true)),
            ("packages", .packages), ("elsewhere, Example.test", .elsewhere("Example.test")),
        ] as [(String?, RunMarker)])
    func markerIsRead(text: String?, marker: RunMarker) throws {
        #expect(try RunMarker(text) == marker)
    }

    @Test(arguments: ["", "no", "elsewhere", "packages, fails", "proxy=yes"])
    func otherMarkerIsRefused(text: String) {
        #expect(throws: MarkerError(text: text)) { try RunMarker(text) }
    }
}
