import Testing

@testable import ReelcacheCLI

@Suite struct GeneratedPartsTests {
    private let page = "# Page\n<!-- begin generated: a -->\nold\n\n<!-- end generated -->\nby hand\n"

    @Test func onlyWhatStandsBetweenTheCommentsIsReplaced() throws {
        let new = try GeneratedParts(page).filled { $0 == "a" ? "new" : nil }
        #expect(new == "# Page\n<!-- begin generated: a -->\n\nnew\n\n<!-- end generated -->\nby hand\n")
        #expect(try GeneratedParts(new).filled { _ in "new" } == new)
    }

    @Test(arguments: [
        ("<!-- begin generated: b -->\n<!-- end generated -->", "the generated part 'b' is unknown: remove it"),
        ("<!-- begin generated: a -->\n", "the generated part 'a' has no end: write <!-- end generated -->"),
        (
            "<!-- begin generated: a -->\n<!-- begin generated: a -->\n<!-- end generated -->",
            "the generated part 'a' has no end: write <!-- end generated -->"
        ),
    ])
    func badPartIsTold(page: String, reason: String) {
        #expect(throws: GeneratedParts.BadPart.self) { try GeneratedParts(page).filled { $0 == "a" ? "" : nil } }
        do { _ = try GeneratedParts(page).filled { $0 == "a" ? "" : nil } } catch { #expect("\(error)" == reason) }
    }

    @Test func tableEscapesBars() {
        #expect(Markdown.table(["A"], [["`a|b`"]]) == "| A |\n|---|\n| `a\\|b` |")
        #expect(Markdown.line("*** and <b> and `*`") == "\\*\\*\\* and \\<b> and `*`")
    }
}
