import HTTPModel

/// The attributes of a tag: `NAME=value`, separated by commas (RFC 8216 §4.2). Values may be quoted; inside quotes,
/// commas are text and there are no escapes.
struct AttributeList: Sendable {
    struct Attribute: Sendable {
        let name: String
        /// From the name to the end of the value, including quotes.
        let whole: Range<Int>
        /// The value, without quotes.
        let value: Range<Int>
        /// The range to remove in order to remove the attribute: it includes one of the commas around it.
        let removal: Range<Int>
    }

    private(set) var attributes: [Attribute] = []

    /// - Throws: if a quoted value has no end on its line.
    init(_ bytes: [UInt8], _ range: Range<Int>, line: Int) throws(PlaylistError) {
        var place = range.lowerBound
        while place < range.upperBound {
            let start = Self.skip(bytes, place..<range.upperBound) { ASCII.isOptionalSpace($0) || $0 == ASCII.comma }
            let nameEnd = Self.skip(bytes, start..<range.upperBound) { $0 != UInt8(ascii: "=") && $0 != ASCII.comma }
            place = nameEnd
            guard nameEnd < range.upperBound, bytes[nameEnd] != ASCII.comma else { continue }
            let value = try Self.value(bytes, (nameEnd + 1)..<range.upperBound, line: line)
            let name = String(decoding: ASCII.trimmed(bytes[start..<nameEnd]), as: UTF8.self)
            let before = attributes.last?.whole.upperBound,
                comma = value.end < range.upperBound ? value.end + 1 : value.end
            let removal = before.map { $0..<value.end } ?? start..<comma
            attributes.append(Attribute(name: name, whole: start..<value.end, value: value.text, removal: removal))
            place = value.end
        }
    }

    /// The first attribute of that name: RFC 8216 §4.2 forbids duplicates.
    subscript(_ name: String) -> Attribute? { attributes.first { $0.name == name } }

    /// - Parameter rest: begins with the value.
    private static func value(_ bytes: [UInt8], _ rest: Range<Int>, line: Int) throws(PlaylistError) -> (
        text: Range<Int>, end: Int
    ) {
        guard rest.lowerBound < rest.upperBound, bytes[rest.lowerBound] == ASCII.quote else {
            let end = skip(bytes, rest) { $0 != ASCII.comma }
            return (rest.lowerBound..<end, end)
        }
        let start = rest.lowerBound + 1
        let end = skip(bytes, start..<rest.upperBound) { $0 != ASCII.quote }
        guard end < rest.upperBound else { throw .malformed("a quoted value has no end", line: line) }
        return (start..<end, end + 1)
    }

    /// The offset of the first byte for which the condition does not hold.
    private static func skip(_ bytes: [UInt8], _ range: Range<Int>, while condition: (UInt8) -> Bool) -> Int {
        var place = range.lowerBound
        while place < range.upperBound, condition(bytes[place]) { place += 1 }
        return place
    }
}
