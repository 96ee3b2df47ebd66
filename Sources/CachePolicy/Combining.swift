import HTTPModel

/// Whether parts of a response from several transfers may be put together (RFC 9110 §15.3.7.3, §8.8.2.2; RFC 9111
/// §3.4).
package enum Combining {
    /// The value for `If-Range` by which more of the very same bytes is asked for; nil where nothing strong tells them
    /// from others.
    /// - Parameter fields: of the stored response.
    package static func condition(for fields: HeaderFields) -> String? {
        if let tag = fields["ETag"].flatMap({ EntityTag(parsing: $0) }) {
            // RFC 9110 §13.1.5: a date is for responses without an entity tag. A weak one says that bytes may differ
            // under the same name.
            return tag.isWeak ? nil : tag.fieldValue
        }
        guard let modified = fields["Last-Modified"], isStrong(lastModified: modified, date: fields["Date"]) else {
            return nil
        }
        return modified
    }

    /// Whether an answer to a request for more of what is stored says that it is of the very version that is stored.
    /// All that it says of its version has to agree; what it may leave out is little.
    ///
    /// | stored | answer | same |
    /// |---|---|---|
    /// | a tag | that tag, and no other date | yes |
    /// | a tag | no tag: §15.3.7 has a 206 send the one that a 200 would | no |
    /// | a date | that date | yes |
    /// | a date | neither, in a 206: §15.3.7 lets it leave the date out | yes |
    /// | a date | a tag, and no date | no |
    ///
    /// - Parameters:
    ///   - answer: fields of the answer.
    ///   - isPart: whether it is a 206, which answers `If-Range`.
    package static func isSameVersion(_ answer: HeaderFields, isPart: Bool, stored: HeaderFields) -> Bool {
        guard condition(for: stored) != nil else { return false }
        let hasSameDate = answer["Last-Modified"].map { isSameDate($0, stored["Last-Modified"]) }
        if let tag = stored["ETag"] {
            guard let other = answer["ETag"], isSameTag(other, tag) else { return false }
            return stored["Last-Modified"] == nil || hasSameDate ?? true
        }
        return hasSameDate ?? (isPart && answer["ETag"] == nil)
    }

    private static func isSameTag(_ a: String, _ b: String) -> Bool {
        guard let a = EntityTag(parsing: a), let b = EntityTag(parsing: b) else { return a == b }
        return a.stronglyMatches(b)
    }

    private static func isSameDate(_ a: String, _ b: String?) -> Bool {
        guard let b else { return false }
        return a == b || HTTPDate.parse(a).map { $0 == HTTPDate.parse(b) } ?? false
    }

    /// §8.8.2.2: a date is weak, as the file may have changed twice within its second, unless the response was made at
    /// least a second later.
    /// - Parameter date: nil where it is not known, of what was stored long ago: then the receipt was later by far.
    static func isStrong(lastModified: String, date: String?) -> Bool {
        guard let modified = HTTPDate.parse(lastModified) else { return false }
        guard let made = date.flatMap(HTTPDate.parse) else { return true }
        return made > modified
    }
}
