import HTTPModel

/// Request targets that name a resource of an origin.
extension OriginURL {
    /// Whether a target does so, well-formed or not: `/https/host/path`, `/https://host/path`, or either form with
    /// the whole URL percent-encoded.
    package static func isTarget(_ target: String) -> Bool {
        prefixes.contains(where: target.hasPrefix) || isEncoded(target)
    }

    private static let prefixes = ["/http/", "/https/", "/http:/", "/https:/"]

    private static func isEncoded(_ target: String) -> Bool { encodedScheme(of: target) != nil }

    /// The encoded start of a target, such as `/https%3A%2F%2F`: no file name begins like this.
    private static func encodedScheme(of target: String) -> Substring? {
        // This runs for each request, and nearly all targets have no encoded scheme.
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

    /// The bytes of `/https` and the one after it.
    private static let longestSchemeStart = 7

    /// The target without the encoding that some clients apply when they put a URL into a path segment; nil if it
    /// is not encoded.
    ///
    /// If the rest has a plain slash, only the part before the host was encoded, and percent-encoding in the path
    /// belongs to the origin.
    package static func decodedTarget(_ target: String) -> String? {
        guard let scheme = encodedScheme(of: target) else { return nil }
        let rest = target.dropFirst(scheme.count)
        let name = scheme.dropFirst().prefix { $0 != "%" && $0 != ":" }
        let path = rest.prefix { $0 != "?" && $0 != "#" }
        guard !path.contains("/"), let decoded = PercentEncoding.decoded(path.utf8) else { return "/\(name)/" + rest }
        // A query next to an encoded path also belongs to the URL.
        return "/\(name)/" + PercentEncoding.encodingSpaces(decoded) + rest.dropFirst(path.count)
    }
}
