import HTTPModel

/// Whether parts of a response from several transfers may be combined (RFC 9110 §15.3.7.3, §8.8.2.2; RFC 9111
/// §3.4).
package enum Combining {
    /// The `If-Range` value for requesting more of exactly the same bytes; nil without a strong validator.
    /// - Parameter fields: the fields of the stored response.
    package static func condition(for fields: HeaderFields) -> String? {
        condition(for: fields, fields["ETag"].flatMap { EntityTag(parsing: $0) })
    }

    /// - Parameter tag: the one of these fields.
    package static func condition(for fields: HeaderFields, _ tag: EntityTag?) -> String? {
        // RFC 9110 §8.8.3.3: an encoded form has a validator of its own, but an origin that encodes unasked may encode
        // anew, or not at all, the next time.
        guard ContentEncoding.isUncoded(fields) else { return nil }
        if let tag {
            // RFC 9110 §13.1.5: a date is for responses without an entity tag. A weak tag means that different
            // bytes may share it.
            return tag.isWeak ? nil : tag.fieldValue
        }
        guard let modified = fields["Last-Modified"], isStrong(lastModified: modified, date: fields["Date"]) else {
            return nil
        }
        return modified
    }

    /// Whether the answer to a request for more of a stored response identifies itself as the stored version. Every
    /// validator that it sends must agree, and it may omit little.
    ///
    /// | stored | answer | same |
    /// |---|---|---|
    /// | a tag | that tag, and no other date | yes |
    /// | a tag | no tag: by §15.3.7, a 206 sends the tag that a 200 would | no |
    /// | a date | that date | yes |
    /// | a date | neither, in a 206: §15.3.7 lets it omit the date | yes |
    /// | a date | a tag, and no date | no |
    ///
    /// - Parameters:
    ///   - answer: the fields of the answer.
    ///   - isPart: whether the answer is a 206, which honours `If-Range`.
    package static func isSameVersion(_ answer: HeaderFields, isPart: Bool, stored: HeaderFields) -> Bool {
        guard condition(for: stored) != nil else { return false }
        let hasSameDate = answer["Last-Modified"].map { isSameDate($0, stored["Last-Modified"]) }
        if let tag = stored["ETag"] {
            guard let other = answer["ETag"], isSameTag(other, tag) else { return false }
            return stored["Last-Modified"] == nil || hasSameDate ?? true
        }
        return hasSameDate ?? (isPart && answer["ETag"] == nil)
    }

    /// Whether no validator of an answer shows that it is of another version than the stored one. Weak ones count, and
    /// so do those that only one of them has not.
    static func mayBeSameVersion(_ answer: HeaderFields, stored: HeaderFields) -> Bool {
        let tags = (answer["ETag"], stored["ETag"]), dates = (answer["Last-Modified"], stored["Last-Modified"])
        if let one = tags.0, let other = tags.1, !isSameTag(one, orWeakly: other) { return false }
        if let one = dates.0, !isSameDate(one, dates.1 ?? one) { return false }
        return true
    }

    private static func isSameTag(_ a: String, orWeakly b: String) -> Bool {
        guard let a = EntityTag(parsing: a), let b = EntityTag(parsing: b) else { return a == b }
        return a.weaklyMatches(b)
    }

    private static func isSameTag(_ a: String, _ b: String) -> Bool {
        guard let a = EntityTag(parsing: a), let b = EntityTag(parsing: b) else { return a == b }
        return a.stronglyMatches(b)
    }

    private static func isSameDate(_ a: String, _ b: String?) -> Bool {
        guard let b else { return false }
        return a == b || HTTPDate.parse(a).map { $0 == HTTPDate.parse(b) } ?? false
    }

    /// §8.8.2.2: a date is weak, as the file may have changed twice within that second, unless the response was
    /// generated at least a second later.
    /// - Parameter date: nil if unknown, for a response stored long ago, which was received much later than its
    ///   date.
    static func isStrong(lastModified: String, date: String?) -> Bool {
        guard let modified = HTTPDate.parse(lastModified) else { return false }
        guard let made = date.flatMap(HTTPDate.parse) else { return true }
        return made > modified
    }
}
