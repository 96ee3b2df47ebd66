/// An origin's name for one version of a resource's bytes (RFC 9110 §8.8.3).
package struct EntityTag: Sendable, Hashable {
    package let isWeak: Bool
    /// The text between the quotes.
    package let opaque: String

    /// Nil for anything other than an entity tag; without its quotes, it is not a tag, and not a validator.
    package init?(parsing field: String) {
        var field = field
        let tag = field.withUTF8 { bytes -> EntityTag? in
            var text = ASCII.trimmed(UnsafeRawBufferPointer(bytes))[...]
            let isWeak = text.starts(with: "W/".utf8)
            if isWeak { text = text.dropFirst(2) }
            guard text.count >= 2, text.first == ASCII.quote, text.last == ASCII.quote else { return nil }
            let opaque = text.dropFirst().dropLast()
            guard opaque.allSatisfy(Self.isTagCharacter) else { return nil }
            return EntityTag(isWeak: isWeak, opaque: String(decoding: opaque, as: UTF8.self))
        }
        guard let tag else { return nil }
        self = tag
    }

    private init(isWeak: Bool, opaque: String) { (self.isWeak, self.opaque) = (isWeak, opaque) }

    /// A strong tag.
    /// - Parameter opaque: without quotes, control characters and spaces.
    package init(opaque: String) { (isWeak, self.opaque) = (false, opaque) }

    fileprivate init?(_ scanner: inout FieldScanner) {
        isWeak = scanner.take("W/")
        guard scanner.take(ASCII.quote) else { return nil }
        opaque = String(Substring(scanner.take(while: Self.isTagCharacter)))
        guard scanner.take(ASCII.quote) else { return nil }
    }

    /// `etagc`: a backslash is an ordinary character, not an escape.
    private static func isTagCharacter(_ byte: UInt8) -> Bool {
        byte > ASCII.space && byte != ASCII.quote && byte != 0x7F
    }

    package var fieldValue: String {
        String(upTo: opaque.utf8.count + 4) { text in
            text.append(isWeak ? "W/\"" : "\"")
            text.append(text: opaque)
            text.append("\"")
        }
    }

    /// Whether both identify the same bytes, so that ranges may be joined (RFC 9110 §8.8.3.2).
    package func stronglyMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && weaklyMatches(other)
    }

    /// Whether both identify equivalent content, which suffices to save a transfer.
    package func weaklyMatches(_ other: EntityTag) -> Bool {
        // Compares bytes, because `String ==` treats different bytes as equal if they are canonically equivalent in
        // Unicode.
        opaque.utf8.elementsEqual(other.opaque.utf8)
    }

    package static func == (a: EntityTag, b: EntityTag) -> Bool { a.isWeak == b.isWeak && a.weaklyMatches(b) }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(isWeak)
        hasher.combine(opaque)
    }

    /// Parses `If-Match` or `If-None-Match`. Elements that are not entity tags match nothing and are skipped.
    package static func parseList(_ value: String) -> List {
        var scanner = FieldScanner(value)
        if ASCII.trimmed(scanner.rest).elementsEqual(CollectionOfOne(UInt8(ascii: "*"))) { return .any }
        var tags: [EntityTag] = []
        while !scanner.isAtEnd {
            scanner.skipOptionalSpace()
            let tag = EntityTag(&scanner)
            scanner.skipOptionalSpace()
            if let tag, scanner.isAtEnd || scanner.rest.first == ASCII.comma { tags.append(tag) }
            scanner.skipElement()
        }
        return .tags(tags)
    }
}

extension EntityTag {
    package enum List: Sendable, Equatable {
        /// `*`: any current representation.
        case any
        case tags([EntityTag])
    }
}
