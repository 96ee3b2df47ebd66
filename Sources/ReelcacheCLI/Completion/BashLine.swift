/// A command line of bash up to the cursor.
///
/// Bash also breaks words at `:` and `=` (`COMP_WORDBREAKS`), and replaces only the text after the last of them, so a
/// reply is the rest of a candidate, not all of it.
///
///     reelcache show https://exam    the word at the cursor is https://exam, bash replaces //exam
package struct BashLine {
    /// The words between the program and the word at the cursor, without quotes.
    package let words: [String]
    /// The word at the cursor, without quotes.
    package let current: String
    /// The beginning of that word, which bash leaves as it is.
    private let kept: String
    /// The quote that is open where bash begins to replace.
    private let quote: Character?

    /// - Parameters:
    ///   - line: the line up to the cursor.
    ///   - replaced: the word at the cursor as bash breaks words; bash replaces it.
    package init(_ line: String, replacing replaced: String) {
        var all = ShellReader.words(of: line)
        let last = all.popLast() ?? ShellReader()
        let raw = String(last.raw.hasSuffix(replaced) ? last.raw.dropLast(replaced.count) : "")
        let head = ShellReader.words(of: raw).last ?? ShellReader()
        (kept, quote) = (head.text, head.quote)
        current = last.text
        words = all.map(\.text).drop { Self.isAssignment($0) }.dropFirst().map { $0 }
    }

    /// Whether a word is `NAME=value`, as may precede a command.
    private static func isAssignment(_ word: String) -> Bool {
        word.prefixMatch(of: /[A-Za-z_][A-Za-z0-9_]*=/) != nil
    }

    /// The text that bash inserts for a candidate; nil if the candidate does not begin with the text that bash keeps.
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

/// Reads one word of a command line, with quotes and backslashes as in shells.
package struct ShellReader {
    /// The word as written.
    private(set) var raw = ""
    /// The word without quotes.
    package private(set) var text = ""
    /// The quote that is still open at the end of the word.
    private(set) var quote: Character?
    private var isEscaped = false
    private var hasBegun = false

    init() {}

    /// Reads a single word.
    package init(word: String) { for character in word { take(character) } }

    /// The words of a line. The last one may be empty or unfinished.
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
            // Inside double quotes, a backslash escapes only characters that are special there.
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
