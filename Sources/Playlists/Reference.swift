import CachePolicy
import Glibc
import HTTPModel

/// References as playlists hold them (RFC 3986 §4.1), in ASCII.
enum Reference {
    /// Characters that no URL has are percent-encoded, as players do before they ask: spaces, and bytes outside of
    /// ASCII, whatever they encode.
    static func text(_ bytes: some BidirectionalCollection<UInt8>) -> String {
        bytes.allSatisfy { $0 > ASCII.space && $0 < 0x80 }
            ? String(decoding: bytes, as: UTF8.self) : PercentEncoding.encodingSpaces(trimmed(bytes))
    }

    private static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ bytes: Bytes) -> Bytes.SubSequence {
        let tail = bytes.drop(while: isXMLSpace)
        guard let last = tail.lastIndex(where: { !isXMLSpace($0) }) else { return tail }
        return tail[...last]
    }

    /// What stands behind a `#`, with it; empty where there is none. It is the client's own, and never sent (RFC 3986
    /// §3.5).
    static func fragment(of reference: String) -> Substring { reference.drop { $0 != "#" } }

    /// Whether resolving a reference does no more than append it to the base's directory: a relative path, none of
    /// whose segments begins with a dot.
    static func isPlain(_ reference: String) -> Bool {
        var isAtStart = true
        for byte in reference.utf8 {
            switch byte {
            case UInt8(ascii: "/"):
                if isAtStart { return false }
                isAtStart = true
            case UInt8(ascii: "."):
                if isAtStart { return false }
            case ASCII.colon: return false
            case UInt8(ascii: "?"), UInt8(ascii: "#"): return !isAtStart
            default:
                guard byte > ASCII.space, byte < 0x7F, byte != ASCII.backslash else { return false }
                isAtStart = false
            }
        }
        return !reference.isEmpty
    }
}

extension String {
    /// Whether one of some bytes is in it. Long texts are looked through as a whole for each.
    func hasByte(of bytes: [UInt8]) -> Bool {
        var text = self
        return text.withUTF8 { buffer in
            guard let base = buffer.baseAddress else { return false }
            return bytes.contains { memchr(base, Int32($0), buffer.count) != nil }
        }
    }
}
