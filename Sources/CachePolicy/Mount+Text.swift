import HTTPModel

extension Mount {
    /// Parses `/tv/=https://origin/vod/`, and with a space and for whom the cache stores,
    /// `/tv/=https://origin/vod/ shared`.
    package init(parsing text: String) throws(OriginURLError) {
        guard let sign = text.firstIndex(of: "=") else {
            throw OriginURLError(
                reason: "'\(text)' does not name the origin to mount; write it like /tv/=https://origin.example/vod/")
        }
        let place = text[sign...].dropFirst(), words = place.split(separator: " ", omittingEmptySubsequences: false)
        let cache = words.last.flatMap { words.count == 2 ? CacheMode(rawValue: String($0)) : nil }
        try self.init(
            path: String(text[..<sign]), url: String(cache == nil ? place : words.first ?? place), cache: cache)
    }

    /// - Parameter url: the URL below which the resources are.
    package init(path: String, url: String, cache: CacheMode? = nil) throws(OriginURLError) {
        try Self.check(path)
        let origin: OriginURL
        do throws(OriginURLError) { origin = try OriginURL(url: url) } catch {
            throw OriginURLError(reason: "'\(URLMask.standard.masked(url))' cannot be mounted: \(error.reason)")
        }
        guard !origin.pathAndQuery.contains("?") else {
            throw OriginURLError(reason: "'\(url)' cannot be mounted: remove the query")
        }
        guard origin.pathAndQuery.hasSuffix("/") else {
            throw OriginURLError(reason: "'\(url)' cannot be mounted: write \(origin.absolute)/")
        }
        self.init(path: path, origin: origin, cache: cache)
    }

    private static func check(_ path: String) throws(OriginURLError) {
        guard path.hasPrefix("/"), path.hasSuffix("/") else {
            let name = path.split(separator: "/").joined(separator: "/")
            throw OriginURLError(
                reason:
                    "'\(path)' is not a mount path: begin and end it with /\(name.isEmpty ? "" : ", such as /\(name)/")"
            )
        }
        let segments = path.dropFirst().dropLast().split(separator: "/", omittingEmptySubsequences: false)
        guard path == "/" || segments.allSatisfy(isPlain) else {
            throw OriginURLError(
                reason:
                    "'\(path)' is not a mount path: write each part with letters, digits, -, . and _, such as /tv/")
        }
        guard !isReserved(path) else {
            throw OriginURLError(reason: "'\(path)' is reserved for the proxy: mount at another path, such as /tv/")
        }
    }

    private static func isPlain(_ segment: Substring) -> Bool {
        !segment.isEmpty && segment != "." && segment != ".." && segment.utf8.allSatisfy(PercentEncoding.isUnreserved)
    }

    /// The form that `init(parsing:)` reads.
    package var text: String { path + "=" + origin.absolute + (cache.map { " " + $0.rawValue } ?? "") }
}
