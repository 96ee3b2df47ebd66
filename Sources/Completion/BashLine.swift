/// A command line of bash up to the cursor.
///
/// Bash breaks words at `:` and `=` too (`COMP_WORDBREAKS`), and replaces what stands behind the last of them: a reply
/// is the rest of a candidate, not all of it.
///
///     reelcache show https://exam    the word at the cursor is https://exam, bash replaces //exam
package struct BashLine {
    /// Between the program and the word at the cursor, without quotes.
    package let words: [String]
    /// The word at the cursor, without quotes.
    package let current: String
    /// What bash leaves of it as it is.
    private let kept: String
    /// The quote that is open where bash begins to replace.
    private let quote: Character?

    /// - Parameters:
    ///   - line: from its beginning to the cursor.
    ///   - replaced: what bash takes for the word at the cursor, and replaces.
    package init(_ line: String, replacing replaced: String) {
        var all = ShellReader.words(of: line)
        let last = all.popLast() ?? ShellReader()
        let raw = String(last.raw.hasSuffix(replaced) ? last.raw.dropLast(replaced.count) : "")
        let head = ShellReader.words(of: raw).last ?? ShellReader()
        (kept, quote) = (head.text, head.quote)
        current = last.text
        words = all.map(\.text).drop { Self.isAssignment($0) }.dropFirst().map { $0 }
    }

    /// `NAME=value` before a command.
    private static func isAssignment(_ word: String) -> Bool {
        word.prefixMatch(of: /[A-Za-z_][A-Za-z0-9_]*=/) != nil
    }

    /// What bash puts into the line for a candidate; nil where that does not go on from what stays.
    package func reply(_ candidate: String) -> String? {
        guard candidate.hasPrefix(kept) else { return nil }
        return Self.quoted(candidate.dropFirst(kept.count), in: quote)
    }

    private static func quoted(_ text: Substring, in quote: Character?) -> String {
        switch quote {
        case "'": String(text).replacing("'", with: #"'\''"#)
        case "\"": escaped(text) { #""$`\"#.contains($0) }
        default: escaped(text) { $0.isASCII && !$0.isLetter && !$0.isNumber && !"_./:@%+,=^~-".contains($0) }
        }
    }

    private static func escaped(_ text: Substring, _ isSpecial: (Character) -> Bool) -> String {
        text.reduce(into: "") { $0 += isSpecial($1) ? "\\\($1)" : "\($1)" }
    }
}

/// A word of a command line, as shells read quotes and backslashes.
package struct ShellReader {
    /// As it is written.
    private(set) var raw = ""
    /// Without quotes.
    package private(set) var text = ""
    /// The one that is open at its end.
    private(set) var quote: Character?
    private var isEscaped = false
    private var hasBegun = false

    init() {}

    /// A single word.
    package init(word: String) { for character in word { take(character) } }

    /// The words of a line, the last of which may be empty, or not at its end.
    static func words(of line: String) -> [ShellReader] {
        var (words, word) = ([ShellReader](), ShellReader())
        for character in line {
            if character.isWhitespace, word.quote == nil, !word.isEscaped {
                if word.hasBegun { words.append(word) }
                word = ShellReader()
            } else {
                word.take(character)
            }
        }
        return words + [word]
    }

    private mutating func take(_ character: Character) {
        raw.append(character)
        hasBegun = true
        if isEscaped {
            // Inside double quotes a backslash is one, unless what follows has a meaning there.
            if quote == "\"", !#""$`\"#.contains(character) { text.append("\\") }
            text.append(character)
            isEscaped = false
        } else if character == "\\", quote != "'" {
            isEscaped = true
        } else if character == quote {
            quote = nil
        } else if quote == nil, character == "'" || character == "\"" {
            quote = character
        } else {
            text.append(character)
        }
    }
}
