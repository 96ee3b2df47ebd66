import Glibc
import HTTPModel

/// Resolves references found in an answer from this URL (RFC 3986 §5.2).
extension OriginURL {
    /// - Returns: nil if the reference cannot be fetched: another scheme, no host, characters that are invalid in a
    ///   URL.
    package func resolving(_ reference: String) -> OriginURL? {
        resolvingName(reference) ?? resolvingAny(reference)
    }

    /// The fast path: most references in playlists are plain names below the base's directory, which can be
    /// appended without parsing. Nil for all others.
    private func resolvingName(_ reference: String) -> OriginURL? {
        guard Self.isPlainName(reference.utf8), let length = lengthOfPlainDirectory else { return nil }
        let directory = Substring(pathAndQuery.utf8.prefix(length))
        return OriginURL(scheme: scheme, host: host, port: port, pathAndQuery: String(directory) + reference)
    }

    /// Whether a reference leads to another URL, without resolving it; also false where only that would show it.
    package func leads(by reference: String, to other: OriginURL) -> Bool {
        let name = reference.utf8
        guard name.first != Self.slash || name.dropFirst().first == Self.slash else {
            return OriginURL.areSameOrigin(self, other) && Self.areSame(reference, other.pathAndQuery)
                && !other.mayHaveDotSegments
        }
        guard Self.isPlainName(name) else {
            return reference.hasPrefix(other.scheme.rawValue) && Self.areSame(reference, other.absolute)
                && !other.mayHaveDotSegments
        }
        guard OriginURL.areSameOrigin(self, other), let length = lengthOfPlainDirectory else { return false }
        let path = other.pathAndQuery.utf8
        // no trap: two texts in memory
        guard path.count == length + name.count else { return false }
        return Self.isSame(pathAndQuery.utf8, path, from: 0, length)
            && Self.isSame(name, path, from: length, name.count)
    }

    /// Whether the first `count` bytes of a text stand in another at an offset. Neither is shorter.
    private static func isSame(_ text: String.UTF8View, _ other: String.UTF8View, from offset: Int, _ count: Int)
        -> Bool
    {
        text.withContiguousStorageIfAvailable { text in
            other.withContiguousStorageIfAvailable { other in
                count == 0 || memcmp(text.baseAddress!, other.baseAddress! + offset, count) == 0
            } ?? false
        } ?? false
    }

    /// Whether the bytes are the same. Swift also takes other characters for equal (U+212A and K), which are longer.
    private static func areSame(_ reference: String, _ ascii: String) -> Bool {
        reference.utf8.count == ascii.utf8.count && reference == ascii
    }

    private var mayHaveDotSegments: Bool { pathAndQuery.contains("/.") }

    /// Whether a reference begins with a name, has neither a scheme nor a dot segment, and needs no encoding or
    /// trimming.
    private static func isPlainName(_ reference: String.UTF8View) -> Bool {
        guard let first = reference.first, first != slash, first != questionMark else { return false }
        // A name that begins with a dot may be a dot segment.
        var follows = slash
        return reference.withContiguousStorageIfAvailable { reference in
            reference.allSatisfy { byte in
                defer { follows = byte }
                return isPlain(byte) && !(follows == slash && byte == UInt8(ascii: "."))
            }
        } ?? false
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case slash, questionMark, UInt8(ascii: "="), UInt8(ascii: "&"): true
        default: PercentEncoding.isUnreserved(byte)
        }
    }

    /// The length in bytes of the path up to and including its last slash; nil if there may be a dot segment in it.
    private var lengthOfPlainDirectory: Int? {
        pathAndQuery.utf8.withContiguousStorageIfAvailable { path in
            var length: Int?
            for (place, byte) in path.enumerated() {
                if byte == Self.questionMark { break }
                if length == place, byte == UInt8(ascii: ".") { return nil }
                if byte == Self.slash { length = place + 1 } // no trap: an index
            }
            return length
        } ?? nil
    }

    private static var slash: UInt8 { UInt8(ascii: "/") }
    private static var questionMark: UInt8 { UInt8(ascii: "?") }

    /// Resolves any reference, step by step.
    func resolvingAny(_ reference: String) -> OriginURL? {
        let reference = PercentEncoding.encodingNonASCII(ASCII.trimmed(reference.utf8)).prefix { $0 != "#" }
        if Self.hasScheme(reference) { return (try? OriginURL(url: String(reference)))?.withoutDotSegments }
        if reference.hasPrefix("//") {
            return (try? OriginURL(url: scheme.rawValue + ":" + reference))?.withoutDotSegments
        }
        let path = pathAndQuery.prefix { $0 != "?" }
        let target: Substring
        switch reference.first {
        case nil: return self
        case "/": target = reference
        case "?": target = path + reference
        // §5.2.3: replaces the part after the last slash.
        default: target = path.prefix(through: path.lastIndex(of: "/") ?? path.startIndex) + reference
        }
        return (try? OriginURL(url: scheme.rawValue + "://" + authority + target))?.withoutDotSegments
    }

    /// §4.2: a colon before the first slash ends a scheme; a path with one is written `./a:b`.
    private static func hasScheme(_ reference: Substring) -> Bool {
        reference.prefix { $0 != "/" && $0 != "?" }.contains(":")
    }

    /// §5.2.4, applied to the path only: dots in a query have no meaning.
    private var withoutDotSegments: OriginURL {
        let path = pathAndQuery.prefix { $0 != "?" }
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        var kept: [Substring] = []
        for segment in segments where segment != "." {
            if segment != ".." { kept.append(segment) } else { _ = kept.popLast() }
        }
        // A path that ends in a dot segment names a directory.
        if let last = segments.last, last == "." || last == ".." { kept.append("") }
        return OriginURL(
            scheme: scheme, host: host, port: port,
            pathAndQuery: "/" + kept.joined(separator: "/") + pathAndQuery.dropFirst(path.count))
    }
}
