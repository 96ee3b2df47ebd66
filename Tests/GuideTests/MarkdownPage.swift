/// The parts of a page that tests use: its fenced blocks, its headings and its links.
///
/// | term | meaning |
/// |---|---|
/// | block | the lines between two fences |
/// | marker | an HTML comment right before a block, which tells how to run it: `<!-- run: fails -->` |
/// | link | a reference to another file, a place in one, or an address on the web |
struct MarkdownPage: Equatable {
    struct Block: Equatable {
        /// The text after the opening fence: `sh`, `json`, or nothing.
        let language: String
        /// The number of the first line of `text` in the file, counted from 1.
        let line: Int
        /// The lines without the indentation of the fence, with a newline at the end of each line.
        var text: String
        let marker: String?
    }

    struct Link: Equatable {
        let target: String
        let line: Int
    }

    struct Heading: Equatable {
        let text: String
        let line: Int
    }

    private(set) var blocks: [Block] = []
    private(set) var headings: [Heading] = []
    private(set) var links: [Link] = []
    /// Of HTML elements.
    private var names: [String] = []

    init(_ text: String) {
        var fence: Fence?
        var marker: String?
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if let open = fence {
                if open.isClosed(by: line) { fence = nil } else { take(open.content(of: line)) }
            } else if let open = Fence(line) {
                fence = open
                blocks.append(Block(language: open.language, line: index + 2, text: "", marker: marker))
                marker = nil
            } else {
                read(line, index + 1)
                if !line.allSatisfy(\.isWhitespace) { marker = Self.marker(line) }
            }
        }
    }

    private mutating func take(_ line: Substring) { blocks[blocks.count - 1].text += line + "\n" }

    private mutating func read(_ line: Substring, _ number: Int) {
        if let heading = line.wholeMatch(of: /#{1,6}\s+(.*?)\s*#*\s*/) {
            headings.append(Heading(text: String(heading.1), line: number))
        }
        let prose = line.replacing(/`+[^`]*`+/, with: "")
        let inline = prose.matches(of: /\]\(\s*<?([^()\s<>]+)>?(?:\s+"[^"]*")?\s*\)/).map(\.1)
        let html = prose.matches(of: /(?:src|srcset|href)="([^"]+)"/).map(\.1)
        let reference = prose.firstMatch(of: /^\[[^\]]+\]:\s+(\S+)/).map { [$0.1] } ?? []
        links += (inline + html + reference).map { Link(target: String($0), line: number) }
        names += prose.matches(of: /<a\s+(?:id|name)="([^"]+)"/).map { String($0.1) }
    }

    private static func marker(_ line: Substring) -> String? {
        line.wholeMatch(of: /\s*<!--\s*run:\s*(.*?)\s*-->\s*/).map { String($0.1) }
    }

    /// The places that a link can name, by GitHub's rules.
    var anchors: Set<String> {
        var (anchors, counts) = (Set(names), [String: Int]())
        for heading in headings {
            let anchor = Self.anchor(heading.text)
            let count = counts[anchor, default: 0]
            anchors.insert(count == 0 ? anchor : "\(anchor)-\(count)")
            counts[anchor] = count + 1
        }
        return anchors
    }

    /// Lower case, without punctuation, with hyphens for spaces: `What "it" does` is `what-it-does`.
    static func anchor(_ heading: String) -> String {
        let text = heading.replacing(/!?\[([^\]]*)\]\([^)]*\)/) { $0.1 }
        return String(
            text.lowercased().compactMap { character -> Character? in
                if character == " " { return "-" }
                return character.isLetter || character.isNumber || character == "-" || character == "_"
                    ? character : nil
            })
    }
}

/// The opening of a fenced block.
private struct Fence {
    let language: String
    private let indentation: Int
    private let ticks: Int

    init?(_ line: Substring) {
        guard let match = line.wholeMatch(of: /(\s*)(`{3,})\s*([^`]*)/) else { return nil }
        (indentation, ticks, language) = (
            match.1.count, match.2.count, match.3.split(separator: " ").first.map(String.init) ?? ""
        )
    }

    func isClosed(by line: Substring) -> Bool {
        let bare = line.trimmingPrefix(while: \.isWhitespace)
        let count = bare.prefix { $0 == "`" }.count
        return count >= ticks && bare.dropFirst(count).allSatisfy(\.isWhitespace)
    }

    func content(of line: Substring) -> Substring {
        line.dropFirst(min(indentation, line.prefix { $0 == " " }.count))
    }
}
