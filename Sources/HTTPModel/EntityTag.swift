/// The name that an origin gives to one version of a resource's bytes (RFC 9110 §8.8.3).
package struct EntityTag: Sendable, Hashable {
    package let isWeak: Bool
    /// What stands between the quotes.
    package let opaque: String

    /// Nil for what is not an entity tag; without its quotes it is none, and no validator.
    package init?(parsing field: String) {
        var scanner = FieldScanner(field)
        scanner.skipOptionalSpace()
        guard let tag = EntityTag(&scanner) else { return nil }
        scanner.skipOptionalSpace()
        guard scanner.isAtEnd else { return nil }
        self = tag
    }

    /// A strong one.
    /// - Parameter opaque: without quotes, control characters and spaces.
    package init(opaque: String) { (isWeak, self.opaque) = (false, opaque) }

    fileprivate init?(_ scanner: inout FieldScanner) {
        isWeak = scanner.take("W/")
        guard scanner.take(ASCII.quote) else { return nil }
        opaque = String(Substring(scanner.take(while: Self.isTagCharacter)))
        guard scanner.take(ASCII.quote) else { return nil }
    }

    /// `etagc`: a backslash is a character like any other, not an escape.
    private static func isTagCharacter(_ byte: UInt8) -> Bool {
        byte > ASCII.space && byte != ASCII.quote && byte != 0x7F
    }

    package var fieldValue: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }

    /// The same bytes: fit for joining ranges (RFC 9110 §8.8.3.2).
    package func stronglyMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && weaklyMatches(other)
    }

    /// The same meaning: fit for saving a transfer.
    package func weaklyMatches(_ other: EntityTag) -> Bool {
        // Bytes, not `String ==`: that takes different bytes for equal where Unicode calls them canonically equivalent.
        opaque.utf8.elementsEqual(other.opaque.utf8)
    }

    package static func == (a: EntityTag, b: EntityTag) -> Bool { a.isWeak == b.isWeak && a.weaklyMatches(b) }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(isWeak)
        hasher.combine(opaque)
    }

    /// What `If-Match` and `If-None-Match` hold. Elements that are no entity tags match nothing and are passed over.
    package static func parseList(_ value: String) -> EntityTagList {
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

package enum EntityTagList: Sendable, Equatable {
    /// `*`: whatever there is.
    case any
    case tags([EntityTag])
}
