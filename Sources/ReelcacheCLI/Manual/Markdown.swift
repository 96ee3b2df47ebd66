/// Writes text in Markdown, for the guide.
enum Markdown {
    /// Paragraphs and fenced lines.
    static func blocks(_ prose: Prose) -> String {
        prose.blocks.map { block in
            switch block {
            case .paragraph(let spans): line(spans)
            case .literal(let lines): "```text\n\(lines.joined(separator: "\n"))\n```"
            }
        }.joined(separator: "\n\n")
    }

    /// One line; also suitable for the cell of a table.
    static func line(_ text: String) -> String { line(Prose.spans(text)) }

    private static func line(_ spans: [Prose.Span]) -> String {
        spans.map { span in
            switch span {
            case .text(let text): escaped(text)
            case .code(let text): code(text)
            }
        }.joined()
    }

    static func code(_ text: String) -> String { "`\(text)`" }

    /// Escapes vertical bars, which end a cell even inside code.
    static func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }

    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            switch character {
            case "*", "<", "[", "]", "\\", "`": result += "\\\(character)"
            default: result.append(character)
            }
        }
    }

    static func table(_ heads: [String], _ rows: [[String]]) -> String {
        let line = { (cells: [String]) in "| \(cells.joined(separator: " | ")) |" }
        return ([line(heads), "|" + heads.map { _ in "---|" }.joined()] + rows.map { line($0.map(cell)) })
            .joined(separator: "\n")
    }
}
