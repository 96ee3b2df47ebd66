import HTTPModel

/// What is no longer to be answered from the cache once an unsafe method has succeeded (RFC 9111 §4.4).
package enum Invalidation {
    /// The target, and what `Location` and `Content-Location` name in the same origin; nothing after a safe method or
    /// an error.
    /// - Parameters:
    ///   - url: what the request was for, where it went.
    ///   - fields: of the response.
    package static func targets(method: RequestMethod, status: Int, url: OriginURL, fields: HeaderFields) -> [OriginURL]
    {
        guard !isSafe(method), 200...399 ~= status else { return [] }
        let named = ["Location", "Content-Location"].flatMap(fields.all).compactMap(url.resolving)
        var keys: Set<CacheKey> = []
        // §4.4: what one origin says does nothing to the responses of another.
        return ([url] + named).filter { OriginURL.areSameOrigin($0, url) && keys.insert($0.cacheKey).inserted }
    }

    /// RFC 9110 §9.2.1, and those registered since. §4.4: of an unknown method it is not known, so that it invalidates.
    /// Names have case.
    private static func isSafe(_ method: RequestMethod) -> Bool {
        switch method {
        case .get, .head, .options: true
        case .other(let name): ["TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY", "PRI"].contains(name)
        }
    }
}
