import HTTPModel

/// Turns the titles in feeds into one line of plain text.
enum FeedTitle {
    /// How many bytes of a title are read.
    private static let examined = 8192

    /// The text of a title that may be HTML, escaped once or twice: without tags, with its entities decoded.
    static func plain(_ written: String?) -> String? {
        guard let written else { return nil }
        let text = String(decoding: written.utf8.prefix(examined), as: UTF8.self)
        return line(HTMLEntities.decoded(HTMLEntities.decoded(withoutTags(text))))
    }

    /// One line of bounded length, without control characters and characters that reverse the order of text; nil if
    /// nothing remains. Applying it to its own result changes nothing.
    static func line(_ text: String) -> String? {
        var line = String.UnicodeScalarView()
        var count = 0, isSpaceDue = false
        for scalar in text.unicodeScalars.prefix(examined) where count < FeedLimits.title {
            if isSpace(scalar) {
                isSpaceDue = !line.isEmpty
            } else if isShown(scalar) {
                if isSpaceDue { line.append(" ") }
                count += isSpaceDue ? 2 : 1
                isSpaceDue = false
                if count <= FeedLimits.title { line.append(scalar) }
            }
        }
        while line.last == " " { line.removeLast() }
        return line.isEmpty ? nil : String(line)
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }

    /// Whether a character is kept. Words and emoji need joiners, which are format characters.
    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate: false
        case .format: scalar == "\u{200C}" || scalar == "\u{200D}"
        default: scalar.value & 0xFFFE != 0xFFFE
        }
    }

    /// Removes tags. A tag begins with a letter, a slash or an exclamation mark: "a < b" contains none.
    private static func withoutTags(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "<")) else { return text }
        var kept: [UInt8] = []
        let bytes = Array(text.utf8)
        var rest = bytes[...]
        // After the last end of a tag, no tag begins: none is searched for.
        let last = bytes.lastIndex(of: UInt8(ascii: ">")) ?? 0
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "<"), rest.startIndex <= last, let first = rest.first, isTagStart(first),
                let end = rest.firstIndex(of: UInt8(ascii: ">"))
            {
                // A line break in HTML separates words.
                if rest.starts(with: "br".utf8) || rest.starts(with: "p".utf8) { kept.append(ASCII.space) }
                rest = rest[(end + 1)...]
            } else {
                kept.append(byte)
            }
        }
        return String(decoding: kept, as: UTF8.self)
    }

    private static func isTagStart(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "!")
    }
}
