import HTTPModel

/// How a stored response takes up what the origin said when it was asked again (RFC 9111 §3.2, §4.3.4, §4.3.5).
package enum Freshening {
    /// The fields for asking whether a stored response still holds (§4.3.1).
    /// - Returns: nil where it has no validator that can tell, so that it can only be fetched anew.
    package static func conditions(for stored: HeaderFields) -> HeaderFields? {
        var fields = HeaderFields()
        if let tag = tag(stored) { fields.append("If-None-Match", tag.fieldValue) }
        if let date = stored["Last-Modified"], HTTPDate.parse(date) != nil { fields.append("If-Modified-Since", date) }
        // RFC 9110 §8.8.2.2: a weak date alone would say "unchanged" also of a file that changed once more within its
        // second, and as the new Date is later, the stored bytes would pass for those of the origin from then on.
        if fields["If-None-Match"] == nil, !hasStrongDate(stored) { return nil }
        return fields
    }

    /// Whether a 304 is about the stored response (§4.3.4). One that names another version is about none that is here.
    package static func isAbout(_ notModified: HeaderFields, stored: HeaderFields) -> Bool {
        if let tag = tag(notModified), let known = Self.tag(stored) {
            // A strong one identifies only the same strong one.
            return tag.isWeak ? tag.weaklyMatches(known) : tag.stronglyMatches(known)
        }
        if let date = date(notModified) { return date == Self.date(stored) }
        // §4.3.4 speaks of a 304 without validators only where the stored response has none either. Many servers leave
        // them out always, and this 304 answers the question about just this response. One with a tag that is not known
        // here is about another.
        return tag(notModified) == nil
    }

    /// Whether the head of a GET's or HEAD's answer is that of the stored response: it has the same validator, and the
    /// same length where both are known (§4.3.5). Nothing but a validator tells; where they only differ in which
    /// validators they have, it counts as another.
    ///
    /// Not enough for putting bytes of both together: see `Combining`.
    package static func isSameVersion(
        _ fields: HeaderFields, length: Int64?, stored: HeaderFields, storedLength: Int64?
    ) -> Bool {
        if let length, let storedLength, length != storedLength { return false }
        let isSameDate = date(fields) != nil && date(fields) == date(stored)
        switch (tag(fields), tag(stored)) {
        case (let new?, let known?) where !known.isWeak: return new.stronglyMatches(known)
        case (let new?, let known?): return new == known && (isSameDate || date(fields) == nil)
        // As for `conditions`.
        case (nil, nil): return isSameDate && hasStrongDate(stored)
        default: return false
        }
    }

    /// The stored fields with those of a newer answer about the same version in their place (§3.2). What describes the
    /// stored bytes stays: their length, coding, type and place are known better here, and their validators must not
    /// become those of other bytes.
    ///
    /// What was said of the earlier answer's time, `Date` and `Age`, goes in any case: without a newer Date, the time
    /// of receipt counts.
    /// - Parameter newer: as it would be stored: without fields of the connection.
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

    private static func hasStrongDate(_ fields: HeaderFields) -> Bool {
        fields["Last-Modified"].map { Combining.isStrong(lastModified: $0, date: fields["Date"]) } ?? false
    }
}
