import HTTPModel

extension XMLRepair {
    /// A tag in a text that may not be well-formed.
    struct Tag {
        enum Kind {
            case start, end
            /// `<x/>`
            case both
        }

        struct Attribute {
            let name: Range<Int>
            /// The position of the value, without quotes.
            let value: Range<Int>
            /// nil if the value has no quotes.
            let quote: UInt8?
        }

        private(set) var kind: Kind
        private(set) var name: Range<Int>
        private(set) var attributes: [Attribute] = []
        private(set) var range: Range<Int>
        /// Whether it needs no repair.
        private(set) var isPlain = true

        /// - Parameter place: the position of a `<`.
        /// - Returns: nil if no tag begins there, or if the text ends within it.
        init?(_ bytes: [UInt8], at place: Int) {
            guard place + 1 < bytes.count, Self.begins(bytes, at: place) else { return nil }
            kind = bytes[place + 1] == XMLByte.slash ? .end : .start
            let first = place + (kind == .end ? 2 : 1)
            name = first..<(bytes[first...].firstIndex(where: Self.endsName) ?? bytes.count)
            range = place..<bytes.count
            guard let end = takeAttributes(bytes) else { return nil }
            range = place..<end
        }

        /// Whether a tag begins: a name follows, or a slash and a name. Only names in ASCII are recognized: all names
        /// that are read have one.
        static func begins(_ bytes: [UInt8], at place: Int) -> Bool {
            let rest = bytes[place...].dropFirst()
            let name = rest.first == XMLByte.slash ? rest.dropFirst() : rest
            guard let first = name.first else { return true }
            return isNameStart(first) && name.prefix { !endsName($0) }.allSatisfy(isNameCharacter)
        }

        private static func isNameStart(_ byte: UInt8) -> Bool {
            ASCII.isLetter(byte) || byte == UInt8(ascii: "_")
        }

        /// XML 1.0 §2.3, production NameChar, within ASCII.
        private static func isNameCharacter(_ byte: UInt8) -> Bool {
            isNameStart(byte) || ASCII.isDigit(byte) || byte == ASCII.colon || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: ".")
        }

        private static func endsName(_ byte: UInt8) -> Bool {
            ASCII.isXMLSpace(byte) || byte == XMLByte.slash || byte == XMLByte.greater || byte == XMLByte.less
        }

        // MARK: - Attributes

        /// - Returns: the end of the tag; nil if the text ends before it.
        private mutating func takeAttributes(_ bytes: [UInt8]) -> Int? {
            var place = name.upperBound
            while place < bytes.count {
                switch bytes[place] {
                case XMLByte.greater: return place + 1
                // The next tag begins within this one, whose end is missing.
                case XMLByte.less:
                    isPlain = false
                    return place
                case XMLByte.slash:
                    place += 1
                    if place < bytes.count, bytes[place] == XMLByte.greater {
                        if kind == .start { kind = .both }
                    } else {
                        isPlain = false
                    }
                case let byte where ASCII.isXMLSpace(byte): place += 1
                default:
                    guard let next = takeAttribute(bytes, at: place) else { return nil }
                    place = next
                }
            }
            return nil
        }

        private mutating func takeAttribute(_ bytes: [UInt8], at start: Int) -> Int? {
            let end = bytes[start...].firstIndex { Self.endsName($0) || $0 == XMLByte.equals } ?? bytes.count
            guard end > start else { return skip(start + 1) }
            let next = bytes[end...].firstIndex { !ASCII.isXMLSpace($0) } ?? bytes.count
            guard next < bytes.count, bytes[next] == XMLByte.equals else { return skip(end) }
            guard let first = bytes[(next + 1)...].firstIndex(where: { !ASCII.isXMLSpace($0) }) else { return nil }
            guard let attribute = Self.attribute(start..<end, valueFrom: first, in: bytes) else { return nil }
            add(attribute, bytes)
            return attribute.value.upperBound + (attribute.quote == nil ? 0 : 1)
        }

        /// Skips text that is not an attribute.
        private mutating func skip(_ place: Int) -> Int {
            isPlain = false
            return place
        }

        private static func attribute(_ name: Range<Int>, valueFrom first: Int, in bytes: [UInt8]) -> Attribute? {
            let quote = bytes[first]
            guard quote == ASCII.quote || quote == UInt8(ascii: "'") else {
                return Attribute(name: name, value: first..<bareEnd(from: first, in: bytes), quote: nil)
            }
            guard let end = bytes[(first + 1)...].firstIndex(of: quote) else { return nil }
            return Attribute(name: name, value: (first + 1)..<end, quote: quote)
        }

        /// The end of a value without quotes: a space or the end of the tag. A slash before the latter belongs to the
        /// tag.
        private static func bareEnd(from first: Int, in bytes: [UInt8]) -> Int {
            let end =
                bytes[first...].firstIndex { ASCII.isXMLSpace($0) || $0 == XMLByte.greater || $0 == XMLByte.less }
                ?? bytes.count
            let isBoth =
                end < bytes.count && bytes[end] == XMLByte.greater && end > first && bytes[end - 1] == XMLByte.slash
            return isBoth ? end - 1 : end
        }

        private mutating func add(_ attribute: Attribute, _ bytes: [UInt8]) {
            let name = bytes[attribute.name], value = bytes[attribute.value]
            let isKnown = attributes.contains { bytes[$0.name].elementsEqual(name) }
            let isName = name.first.map(Self.isNameStart) == true && name.allSatisfy(Self.isNameCharacter)
            guard isName, !isKnown, attributes.count < 100 else {
                isPlain = false
                return
            }
            // A quoted value is followed by its quote, and an attribute by white space.
            let follower = bytes[attribute.value.upperBound...].dropFirst().first
            let isSeparate = follower.map(Self.endsName) ?? false
            isPlain =
                isPlain && attribute.quote != nil && isSeparate
                && value.allSatisfy { $0 >= ASCII.space && $0 < 0x7F && $0 != XMLByte.ampersand && $0 != XMLByte.less }
            attributes.append(attribute)
        }
    }
}

/// Bytes with a meaning in XML.
enum XMLByte {
    static var less: UInt8 { UInt8(ascii: "<") }
    static var greater: UInt8 { UInt8(ascii: ">") }
    static var slash: UInt8 { UInt8(ascii: "/") }
    static var equals: UInt8 { UInt8(ascii: "=") }
    static var ampersand: UInt8 { UInt8(ascii: "&") }
}
