/// The validators of a stored representation, which distinguish its versions (RFC 9110 §8.8).
package struct RepresentationValidators: Sendable, Equatable {
    package var etag: EntityTag?
    /// Seconds since 1970.
    package var lastModified: Int64?

    package init(etag: EntityTag? = nil, lastModified: Int64? = nil) {
        self.etag = etag
        self.lastModified = lastModified
    }
}

/// Evaluates conditional requests against a stored representation (RFC 9110 §13). For use only if the answer would
/// otherwise be 2xx.
package enum Conditional {
    package enum Precondition: Sendable, Equatable {
        case proceed
        /// 304
        case notModified
        /// 412
        case failed
    }

    /// In the order of §13.2.2.
    package static func evaluate(_ request: RequestHead, against stored: RepresentationValidators) -> Precondition {
        // §13.2.1: methods that do not select a representation have no preconditions.
        if request.method == .options { return .proceed }
        guard mayProceed(request, stored) else { return .failed }
        if let list = request.combined("if-none-match") {
            guard matches(list, stored, by: { $0.weaklyMatches($1) }) else { return .proceed }
            return isRead(request.method) ? .notModified : .failed
        }
        return isUnmodifiedSinceClientsCopy(request, stored) ? .notModified : .proceed
    }

    /// Steps 1 and 2. `If-Unmodified-Since` counts only without `If-Match`.
    private static func mayProceed(_ request: RequestHead, _ stored: RepresentationValidators) -> Bool {
        if let list = request.combined("if-match") {
            return matches(list, stored) { $0.stronglyMatches($1) }
        }
        // §13.1.4: ignored unless both dates are valid.
        guard let date = date(request.value(of: "if-unmodified-since")), let lastModified = stored.lastModified else {
            return true
        }
        return lastModified <= date
    }

    /// Step 4.
    private static func isUnmodifiedSinceClientsCopy(_ request: RequestHead, _ stored: RepresentationValidators) -> Bool
    {
        // §13.1.3: ignored for other methods, and unless both dates are valid.
        guard isRead(request.method), let lastModified = stored.lastModified else { return false }
        guard let date = date(request.value(of: "if-modified-since")) else { return false }
        return lastModified <= date
    }

    /// Whether `If-Range` allows the `Range` field to be honoured; if not, the whole representation is sent
    /// (§13.1.5).
    /// - Parameter isDateStrong: whether `Last-Modified` is a strong validator; computed if it matters.
    package static func rangeApplies(
        _ request: RequestHead, against stored: RepresentationValidators, isDateStrong: @autoclosure () -> Bool
    ) -> Bool {
        guard let field = request.value(of: "if-range") else { return true }
        if let tag = EntityTag(parsing: field) {
            // §13.1.5: a weak validator never matches If-Range.
            return stored.etag.map(tag.stronglyMatches) ?? false
        }
        // §13.1.5: exactly the date of the copy, not merely a later one; and never a weak one.
        guard let date = HTTPDate.parse(field), let lastModified = stored.lastModified else { return false }
        return date == lastModified && isDateStrong()
    }

    private static func isRead(_ method: RequestMethod) -> Bool { method == .get || method == .head }

    private static func date(_ field: String?) -> Int64? { field.flatMap(HTTPDate.parse) }

    private static func matches(
        _ list: String, _ stored: RepresentationValidators, by comparison: (EntityTag, EntityTag) -> Bool
    ) -> Bool {
        switch EntityTag.parseList(list) {
        case .any: true
        case .tags(let tags): stored.etag.map { etag in tags.contains { comparison($0, etag) } } ?? false
        }
    }
}
