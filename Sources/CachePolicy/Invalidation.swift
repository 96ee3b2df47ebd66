import HTTPModel

/// Which stored responses become invalid once an unsafe method has succeeded (RFC 9111 §4.4).
package enum Invalidation {
    /// The target, and the URLs in `Location` and `Content-Location` if they have the same origin; none after a
    /// safe method or an error.
    /// - Parameters:
    ///   - url: the URL to which the request was finally sent.
    ///   - fields: the fields of the response.
    package static func targets(method: RequestMethod, status: Int, url: OriginURL, fields: HeaderFields) -> [OriginURL]
    {
        guard !isSafe(method), 200...399 ~= status else { return [] }
        let named = ["Location", "Content-Location"].flatMap(fields.all).compactMap(url.resolving)
        var keys: Set<CacheKey> = []
        // §4.4: one origin cannot invalidate the responses of another.
        return ([url] + named).filter { OriginURL.areSameOrigin($0, url) && keys.insert($0.cacheKey).inserted }
    }

    /// RFC 9110 §9.2.1, and the safe methods registered since. §4.4: an unknown method may be unsafe, so it
    /// invalidates. Names are case-sensitive.
    private static func isSafe(_ method: RequestMethod) -> Bool {
        switch method {
        case .get, .head, .options: true
        case .other(let name): ["TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY", "PRI"].contains(name)
        }
    }
}
