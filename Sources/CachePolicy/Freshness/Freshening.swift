import HTTPModel

/// How a stored response is updated by the origin's answer to a validation (RFC 9111 §3.2, §4.3.4, §4.3.5).
package enum Freshening {
    /// The request fields that validate a stored response (§4.3.1).
    /// - Returns: nil without a usable validator: the response can only be fetched again.
    package static func conditions(for stored: HeaderFields) -> HeaderFields? {
        var fields = HeaderFields()
        if let tag = tag(stored) { fields.append("If-None-Match", tag.fieldValue) }
        if let date = stored["Last-Modified"], HTTPDate.parse(date) != nil { fields.append("If-Modified-Since", date) }
        // RFC 9110 §8.8.2.2: with a weak date alone, the origin would also answer "unchanged" for a file that
        // changed again within that second. As the new Date is later, the date would then pass as strong, and the
        // stored bytes as the origin's.
        if fields["If-None-Match"] == nil, !hasStrongDate(stored) { return nil }
        return fields
    }

    /// Whether a 304 is about the stored response (§4.3.4). A 304 that names another version is not.
    package static func isAbout(_ notModified: HeaderFields, stored: HeaderFields) -> Bool {
        if let tag = tag(notModified), let known = Self.tag(stored) {
            // A strong tag identifies only the response with the same strong tag.
            return tag.isWeak ? tag.weaklyMatches(known) : tag.stronglyMatches(known)
        }
        if let date = date(notModified) { return date == Self.date(stored) }
        // §4.3.4 covers a 304 without validators only if the stored response has none either. But many servers
        // always omit them, and this 304 answers a request about exactly this response. A 304 with a tag that the
        // stored response lacks is about another version.
        return tag(notModified) == nil
    }

    /// Whether the head of an answer to GET or HEAD belongs to the stored version: it has the same validator, and
    /// the same length if both are known (§4.3.5). Only a validator decides; a head with other kinds of validators
    /// counts as another version.
    ///
    /// Not enough for combining the bytes of both: see `Combining`.
    package static func isSameVersion(
        _ fields: HeaderFields, length: Int64?, stored: HeaderFields, storedLength: Int64?
    ) -> Bool {
        if let length, let storedLength, length != storedLength { return false }
        let isSameDate = date(fields) != nil && date(fields) == date(stored)
        switch (tag(fields), tag(stored)) {
        case (let new?, let known?) where !known.isWeak: return new.stronglyMatches(known)
        case (let new?, let known?): return new == known && (isSameDate || date(fields) == nil)
        // For the same reason as in `conditions`.
        case (nil, nil): return isSameDate && hasStrongDate(stored)
        default: return false
        }
    }

    /// The stored fields, updated with those of a newer answer about the same version (§3.2). Fields that describe
    /// the stored bytes stay: the stored length, coding, type and range are the reliable ones, and the validators
    /// must not become those of other bytes.
    ///
    /// `Date` and `Age` of the earlier answer are always removed: without a newer Date, the time of receipt counts.
    /// - Parameter newer: the fields as they would be stored, without connection fields.
    package static func updated(_ stored: HeaderFields, with newer: HeaderFields) -> HeaderFields {
        var fields = stored
        for name in ["Date", "Age"] { fields.remove(name) }
        var seen: Set<String> = []
        for line in newer.lines {
            let name = ASCII.lowercased(line.name)
            if kept.contains(name) || name == "last-modified" && tag(stored)?.isWeak != false { continue }
            if seen.insert(name).inserted { fields.remove(name) }
            fields.append(line.name, line.value)
        }
        return fields
    }

    private static let kept: FieldNames = [
        "content-length", "content-encoding", "content-type", "content-range", "etag", "vary",
    ]

    private static func tag(_ fields: HeaderFields) -> EntityTag? { fields["ETag"].flatMap { EntityTag(parsing: $0) } }

    private static func date(_ fields: HeaderFields) -> Int64? { fields["Last-Modified"].flatMap(HTTPDate.parse) }

    /// Whether `Last-Modified` is a strong validator (RFC 9110 §8.8.2.2).
    package static func hasStrongDate(_ fields: HeaderFields) -> Bool {
        fields["Last-Modified"].map { Combining.isStrong(lastModified: $0, date: fields["Date"]) } ?? false
    }
}
