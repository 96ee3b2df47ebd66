import HTTPModel

/// A path of the proxy that stands for a part of one origin: with `/tv/` for `https://origin/vod/`, the target
/// `/tv/film.mp4` means `https://origin/vod/film.mp4`.
package struct Mount: Sendable, Hashable {
    /// Begins and ends with "/".
    package let path: String
    /// Its path ends with "/", and it has no query.
    package let origin: OriginURL
    /// For whom the cache stores what is below it; nil if that is not its own.
    package let cache: CacheMode?

    package init(path: String, origin: OriginURL, cache: CacheMode? = nil) {
        self.path = path
        self.origin = origin
        self.cache = cache
    }

    /// Paths that the proxy reserves for itself, even if a mount's path is "/". A mount at or below one of them
    /// would never be reached.
    private static let reserved = ["/api/", "/healthz/", "/http/", "/https/", "/metrics/", "/stats/"]

    /// Whether the proxy answers a target itself, or reads a URL in it, whatever is mounted.
    package static func isReserved(_ target: String) -> Bool {
        let path = String(target.prefix { $0 != "?" && $0 != "#" })
        if path.hasPrefix("/http:") || path.hasPrefix("/https:") || OriginURL.isTarget(path) { return true }
        return reserved.contains { path.hasPrefix($0) || path == $0.dropLast() }
    }

    /// - Parameter target: in origin form, below `path`.
    /// - Throws: if the target would lead out of the mount at an origin that parses it leniently.
    func url(for target: String) throws(OriginURLError) -> OriginURL {
        let sent = target.dropFirst(path.count).prefix { $0 != "#" }
        guard !Self.climbs(sent.prefix { $0 != "?" }.utf8) else {
            throw OriginURLError(reason: "the path contains a \"..\" segment: write the path that it leads to")
        }
        // Scheme, host and port are the mount's, and a path follows them: no target can change the host.
        return OriginURL(
            scheme: origin.scheme, host: origin.host, port: origin.port, pathAndQuery: origin.pathAndQuery + sent)
    }

    /// Whether a segment is "..", as any origin may interpret it: percent-encoded, between backslashes, before a
    /// parameter.
    private static func climbs(_ path: Substring.UTF8View) -> Bool {
        decoded(path).split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }.contains { segment in
            segment.prefix { $0 != UInt8(ascii: ";") }.elementsEqual("..".utf8)
        }
    }

    /// Decodes percent-encoding; a percent sign that does not begin an encoded byte stays as it is.
    private static func decoded(_ path: Substring.UTF8View) -> [UInt8] {
        var decoded: [UInt8] = []
        var rest = path
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2).compactMap { ASCII.hexValue($0) }
            guard byte == UInt8(ascii: "%"), digits.count == 2 else {
                decoded.append(byte)
                continue
            }
            rest.removeFirst(2)
            decoded.append(digits[0] << 4 | digits[1])
        }
        return decoded
    }
}

extension Sequence<Mount> {
    /// The URL for a target, by the mount with the longest path that the target is below. Nil if it is below none.
    /// - Parameter target: in origin form, with its query.
    /// - Throws: if the target would lead out of the mount.
    package func url(for target: String) throws(OriginURLError) -> OriginURL? {
        guard !Mount.isReserved(target) else { return nil }
        let path = target.prefix { $0 != "?" && $0 != "#" }
        var longest: Mount?
        for mount in self where path.hasPrefix(mount.path) && mount.path.count > longest?.path.count ?? 0 {
            longest = mount
        }
        return try longest?.url(for: target)
    }
}
