import HTTPModel

/// Request targets that name a resource of an origin.
extension OriginURL {
    /// Whether a target does, well-formed or not: `/https/host/path`, `/https://host/path`, and either with the whole
    /// URL percent-encoded.
    package static func isTarget(_ target: String) -> Bool {
        prefixes.contains(where: target.hasPrefix) || isEncoded(target)
    }

    private static let prefixes = ["/http/", "/https/", "/http:/", "/https:/"]

    private static func isEncoded(_ target: String) -> Bool { encodedScheme(of: target) != nil }

    /// Such as `/https%3A%2F%2F`: no name of a file begins so.
    private static func encodedScheme(of target: String) -> Substring? {
        // Nearly all targets have none, and each request is looked at.
        guard target.utf8.prefix(longestSchemeStart).contains(where: { $0 == UInt8(ascii: "%") || $0 == ASCII.colon })
        else { return nil }
        for scheme in Scheme.allCases {
            for sign in ["%3A%2F%2F", ":%2F%2F", "%3A//"] {
                let prefix = "/" + scheme.rawValue + sign
                let start = target.prefix(prefix.count)
                if ASCII.equalIgnoringCase(start, prefix) { return start }
            }
        }
        return nil
    }

    /// Bytes of `/https` and of what follows it.
    private static let longestSchemeStart = 7

    /// A target as it is without the encoding that a client gives to a URL which it takes for a segment of a path; nil
    /// where it has none.
    ///
    /// Where a slash stands in the rest as it is, only what is before the host was encoded, and what is encoded in the
    /// path is the origin's.
    package static func decodedTarget(_ target: String) -> String? {
        guard let scheme = encodedScheme(of: target) else { return nil }
        let rest = target.dropFirst(scheme.count)
        let name = scheme.dropFirst().prefix { $0 != "%" && $0 != ":" }
        let path = rest.prefix { $0 != "?" && $0 != "#" }
        guard !path.contains("/"), let decoded = PercentEncoding.decoded(path.utf8) else { return "/\(name)/" + rest }
        // A query beside an encoded path is the URL's too.
        return "/\(name)/" + PercentEncoding.encodingSpaces(decoded) + rest.dropFirst(path.count)
    }
}
