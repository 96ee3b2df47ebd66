import CachePolicy
import Glibc
import HTTPModel

/// References in playlists (RFC 3986 §4.1), in ASCII.
enum Reference {
    /// Percent-encodes characters that are invalid in a URL, as players do before they send a request: spaces,
    /// quotes, and bytes outside of ASCII, whatever they encode.
    static func text(_ bytes: some BidirectionalCollection<UInt8>) -> String {
        if bytes.allSatisfy({ $0 > ASCII.space && $0 < 0x80 && $0 != ASCII.quote }) {
            return String(decoding: bytes, as: UTF8.self)
        }
        return PercentEncoding.encodingSpaces(trimmed(bytes)).replacing("\"", with: "%22")
    }

    private static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ bytes: Bytes) -> Bytes.SubSequence {
        let tail = bytes.drop(while: ASCII.isXMLSpace)
        guard let last = tail.lastIndex(where: { !ASCII.isXMLSpace($0) }) else { return tail }
        return tail[...last]
    }

    /// The fragment of a reference with its `#`; empty if there is none. Only the client uses it; it is never sent
    /// (RFC 3986 §3.5).
    static func fragment(of reference: String) -> Substring { reference.drop { $0 != "#" } }

    /// Splits a reference at the last slash of its path, if resolving the directory and appending the rest is the
    /// same as resolving the whole.
    /// - Returns: nil if it is not: the rest is empty, begins with a dot, or is a host.
    static func split(_ reference: String) -> (directory: Substring, rest: Substring)? {
        let path = reference.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let start = path.lastIndex(of: UInt8(ascii: "/")).map { path.index(after: $0) } ?? path.startIndex
        let name = path[start...]
        guard let first = name.first, first != UInt8(ascii: "."), !path[..<start].hasSuffix("//") else { return nil }
        guard reference.utf8[start...].allSatisfy(isURLCharacter), !name.contains(ASCII.colon) else { return nil }
        return (reference[..<start], reference[start...])
    }

    private static func isURLCharacter(_ byte: UInt8) -> Bool { byte > ASCII.space && byte < 0x7F }
}

extension Substring.UTF8View {
    fileprivate func hasSuffix(_ text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}

extension String {
    /// Whether it contains one of these bytes. The whole text is searched for each byte in turn.
    func hasByte(of bytes: [UInt8]) -> Bool {
        var text = self
        return text.withUTF8 { buffer in
            guard let base = buffer.baseAddress else { return false }
            return bytes.contains { memchr(base, Int32($0), buffer.count) != nil }
        }
    }
}
