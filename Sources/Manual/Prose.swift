/// A text of the manual, to be set as a manual page, as Markdown or as comments of the sample file.
///
/// Paragraphs are separated by empty lines; lines that begin with two spaces are shown as they are, which is how
/// examples stand in a command's `discussion`. Between backticks stands code, and so do words such as `--json`.
package struct Prose: Sendable {
    enum Block: Equatable {
        case paragraph([Span])
        /// Lines to be shown as they are, without their indentation.
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

    /// All lines shown as they are.
    package var literals: [String] {
        blocks.flatMap { block -> [String] in if case .literal(let lines) = block { lines } else { [] } }
    }

    /// Of a single paragraph.
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
