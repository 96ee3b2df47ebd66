import HTTPModel

/// How a stored response takes up what the origin said when it was asked again (RFC 9111 §3.2, §4.3.4, §4.3.5).
package enum Freshening {
    /// The fields for asking whether a stored response still holds (§4.3.1).
    /// - Returns: nil where it has no validator, so that it can only be fetched anew.
    package static func conditions(for stored: FieldLines) -> FieldLines? {
        var fields = FieldLines()
        if let tag = stored["ETag"].flatMap({ EntityTag(parsing: $0) }) { fields.append("If-None-Match", tag.fieldValue) }
        if let date = stored["Last-Modified"], HTTPDate.parse(date) != nil { fields.append("If-Modified-Since", date) }
        return fields.lines.isEmpty ? nil : fields
    }

    /// Whether a 304 is about the stored response (§4.3.4). One that names another version is about none that is here.
    package static func isAbout(_ notModified: FieldLines, stored: FieldLines) -> Bool {
        if let tag = notModified["ETag"].flatMap({ EntityTag(parsing: $0) }) {
            return stored["ETag"].flatMap { EntityTag(parsing: $0) }.map(tag.weaklyMatches) ?? false
        }
        if let date = notModified["Last-Modified"].flatMap(HTTPDate.parse), let known = stored["Last-Modified"].flatMap(HTTPDate.parse) { return date == known }
        return true
    }

    /// Whether the head of a GET's or HEAD's answer is that of the stored response: it has the same validator, and the same length where
    /// both are known (§4.3.5).
    package static func isSameVersion(_ fields: FieldLines, length: Int64?, stored: FieldLines, storedLength: Int64?) -> Bool {
        if let length, let storedLength, length != storedLength { return false }
        if let tag = fields["ETag"].flatMap({ EntityTag(parsing: $0) }), let known = stored["ETag"].flatMap({ EntityTag(parsing: $0) }) {
            return tag.weaklyMatches(known) && tag.isWeak == known.isWeak
        }
        guard (fields["ETag"] == nil) == (stored["ETag"] == nil), let date = fields["Last-Modified"] else { return false }
        return date == stored["Last-Modified"]
    }

    /// The stored fields with those of a newer answer about the same version in their place (§3.2). What describes the stored bytes stays:
    /// their length, coding, type and place are known better here.
    package static func updated(_ stored: FieldLines, with newer: FieldLines) -> FieldLines {
        var fields = stored
        var seen: Set<String> = []
        for line in newer.lines {
            let name = line.name.lowercased()
            if kept.contains(name) { continue }
            if seen.insert(name).inserted { fields.remove(line.name) }
            fields.append(line.name, line.value)
        }
        return fields
    }

    private static let kept: Set<String> = ["content-length", "content-encoding", "content-type", "content-range", "etag", "vary"]
}
