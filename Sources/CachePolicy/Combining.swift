import HTTPModel

/// Whether parts of a response from several transfers may be put together (RFC 9110 §15.3.7.3, §8.8.2.2; RFC 9111 §3.4).
package enum Combining {
    /// The value for `If-Range` by which more of the very same bytes is asked for; nil where nothing strong tells them from others.
    /// - Parameter fields: of the stored response.
    package static func condition(for fields: FieldLines) -> String? {
        if let tag = fields["ETag"].flatMap({ EntityTag(parsing: $0) }) {
            // RFC 9110 §13.1.5: a date is for responses without an entity tag. A weak one says that bytes may differ under the same name.
            return tag.isWeak ? nil : tag.fieldValue
        }
        guard let modified = fields["Last-Modified"], isStrong(lastModified: modified, date: fields["Date"]) else { return nil }
        return modified
    }

    /// §8.8.2.2: a date is weak, as the file may have changed twice within its second, unless the response was made at least a second later.
    /// - Parameter date: nil where it is not known, of what was stored long ago: then the receipt was later by far.
    static func isStrong(lastModified: String, date: String?) -> Bool {
        guard let modified = HTTPDate.parse(lastModified) else { return false }
        guard let made = date.flatMap(HTTPDate.parse) else { return true }
        return made - modified >= 1
    }
}
