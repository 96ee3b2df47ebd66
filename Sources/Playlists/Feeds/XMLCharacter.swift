import HTTPModel

/// Characters and references that XML does not allow (XML 1.0 §2.2, §4.1), and their replacements in a repair.
enum XMLCharacter {
    /// The length of a character that XML does not allow: control characters, and in UTF-8 U+FFFE and U+FFFF. nil for
    /// an allowed one.
    static func length(_ bytes: [UInt8], at place: Int, isUTF8: Bool) -> Int? {
        let byte = bytes[place]
        if byte < ASCII.space { return ASCII.isXMLSpace(byte) ? nil : 1 }
        guard isUTF8, byte == 0xEF, bytes[place...].starts(with: [0xEF, 0xBF]) else { return nil }
        let last = bytes[place...].dropFirst(2).first
        return last == 0xBE || last == 0xBF ? 3 : nil
    }

    /// - Parameter rest: text that begins with an ampersand.
    /// - Returns: how many bytes to replace, and the replacement; nil for a valid reference.
    static func reference(_ rest: ArraySlice<UInt8>) -> (Int, String)? {
        let name = rest.dropFirst().prefix(16).prefix { $0 != UInt8(ascii: ";") }
        let count = name.count + 2
        guard rest.dropFirst(name.count + 1).first == UInt8(ascii: ";"), isName(name) else { return (1, "&amp;") }
        let text = String(decoding: name, as: UTF8.self)
        if ["lt", "gt", "amp", "quot", "apos"].contains(text) { return nil }
        if let character = HTMLEntities.character(text) { return (count, "&#\(character.value);") }
        return text.hasPrefix("#") ? (count, " ") : (1, "&amp;")
    }

    private static func isName(_ name: ArraySlice<UInt8>) -> Bool {
        let rest = name.first == UInt8(ascii: "#") ? name.dropFirst() : name
        return !rest.isEmpty && rest.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) }
    }

    /// XML 1.0 §2.4: suitable for text and for attributes with either quote. Preserves line ends in attributes, as
    /// references.
    static func escaped(_ text: String) -> String {
        guard text.utf8.contains(where: { escapes[$0] != nil }) else { return text }
        return String(decoding: text.utf8.flatMap { escapes[$0] ?? [$0] }, as: UTF8.self)
    }

    private static let escapes: [UInt8: [UInt8]] = [
        UInt8(ascii: "&"): Array("&amp;".utf8), UInt8(ascii: "<"): Array("&lt;".utf8),
        UInt8(ascii: ">"): Array("&gt;".utf8), UInt8(ascii: "\""): Array("&quot;".utf8),
        UInt8(ascii: "'"): Array("&apos;".utf8), 0x09: Array("&#9;".utf8), 0x0A: Array("&#10;".utf8),
        0x0D: Array("&#13;".utf8),
    ]
}
