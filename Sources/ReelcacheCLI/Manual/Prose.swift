/// A text of the manual, to be written as a manual page, as Markdown or as comments of the sample file.
///
/// Empty lines separate paragraphs. Lines that begin with two spaces are shown unchanged, such as the examples in a
/// command's `discussion`. Text between backticks is code, and so are words such as `--json`.
package struct Prose: Sendable {
    enum Block: Equatable {
        case paragraph([Span])
        /// Lines to be shown unchanged, without their indentation.
        case literal([String])
    }

    enum Span: Equatable {
        case text(String)
        case code(String)
    }

    let blocks: [Block]

    package init(_ text: String) {
        var blocks: [Block] = []
        var (words, lines): ([Substring], [String]) = ([], [])
        func endParagraph() {
            if !words.isEmpty { blocks.append(.paragraph(Self.spans(words.joined(separator: " ")))) }
            words = []
        }
        func endLiteral() {
            if !lines.isEmpty { blocks.append(.literal(lines)) }
            lines = []
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("  ") {
                endParagraph()
                lines.append(String(line.dropFirst(2)))
            } else if line.isEmpty {
                endParagraph()
                endLiteral()
            } else {
                endLiteral()
                words.append(line)
            }
        }
        endParagraph()
        endLiteral()
        self.blocks = blocks
    }

    /// All lines that are shown unchanged.
    package var literals: [String] {
        blocks.flatMap { block -> [String] in if case .literal(let lines) = block { lines } else { [] } }
    }

    /// The text and code of a single paragraph.
    static func spans(_ text: String) -> [Span] {
        text.split(separator: "`", omittingEmptySubsequences: false).enumerated().flatMap { number, part in
            number % 2 == 1 ? [.code(String(part))] : flags(in: String(part))
        }
    }

    private static func flags(in text: String) -> [Span] {
        var spans: [Span] = []
        var rest = text[...]
        while let match = rest.firstMatch(of: /(^|[\s(\/])(--[a-z][a-z-]*[a-z])/) {
            let before = String(rest[..<match.range.lowerBound]) + match.1
            if !before.isEmpty { spans.append(.text(before)) }
            spans.append(.code(String(match.2)))
            rest = rest[match.range.upperBound...]
        }
        return rest.isEmpty ? spans : spans + [.text(String(rest))]
    }
}
