import CachePolicy
import HTTPModel

/// The encoding of a feed.
///
/// A byte order mark decides, then whether the bytes are UTF-8, or UTF-8 with few mistakes. The declaration, which is
/// wrong most often, counts only after these.
enum TextEncoding: Equatable {
    case utf8
    /// UTF-8 except for some bytes, which are read as windows-1252.
    case damagedUTF8
    /// One byte for each character, with ASCII in the lower half.
    case table(CharacterTable)
    case utf16(isBigEndian: Bool)

    /// - Parameter declared: the `charset` of the response, or the encoding of the XML declaration.
    init(of bytes: [UInt8], declared: String?) {
        if let wide = Self.wide(bytes) {
            self = wide
        } else if String(validating: bytes, as: UTF8.self) != nil {
            self = .utf8
        } else {
            // UTF-8 with cut characters has few stray bytes; in another encoding, almost all are stray.
            let count = UTF8Count(bytes)
            let isDamaged = count.characters > count.strays && count.strays <= 10_000
            self = isDamaged ? .damagedUTF8 : .table(declared.flatMap(CharacterTable.named) ?? .western)
        }
    }

    /// Recognizes UTF-16 by its byte order mark, or by ASCII next to a zero byte.
    private static func wide(_ bytes: [UInt8]) -> TextEncoding? {
        let head = Array(bytes.prefix(4))
        guard head.count == 4 else { return nil }
        switch (head[0], head[1]) {
        case (0xFE, 0xFF): return .utf16(isBigEndian: true)
        case (0xFF, 0xFE): return .utf16(isBigEndian: false)
        case (0, 1...) where head[2] == 0: return .utf16(isBigEndian: true)
        case (1..., 0) where head[3] == 0: return .utf16(isBigEndian: false)
        default: return nil
        }
    }

    /// The text in UTF-8, or unchanged if its encoding contains ASCII.
    func transcoded(_ bytes: [UInt8]) -> [UInt8] {
        guard case .utf16(let isBigEndian) = self else { return bytes }
        let units = stride(from: 0, to: bytes.count - 1, by: 2).map { place in
            let (high, low) = isBigEndian ? (bytes[place], bytes[place + 1]) : (bytes[place + 1], bytes[place])
            return UInt16(high) << 8 | UInt16(low)
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }

    /// Decodes a line of a list of files.
    func string(_ bytes: ArraySlice<UInt8>) -> String {
        guard case .table(let table) = self else {
            let valid = self == .damagedUTF8 ? FeedText.replacingStrays(Array(bytes)).bytes : Array(bytes)
            return String(decoding: valid, as: UTF8.self)
        }
        let scalars = bytes.lazy.map { byte in
            Unicode.Scalar(byte < 0x80 ? UInt32(byte) : table.characters[Int(byte &- 0x80)]) ?? "\u{FFFD}"
        }
        return String(String.UnicodeScalarView(scalars))
    }
}

/// Counts how much of a text is UTF-8.
struct UTF8Count {
    /// Characters outside of ASCII.
    private(set) var characters = 0
    /// Bytes that do not belong to a character.
    private(set) var strays = 0

    init(_ bytes: [UInt8]) {
        var place = 0
        while place < bytes.count {
            let length = Self.length(at: place, in: bytes)
            if length > 1 { characters += 1 } else if length == 0 { strays += 1 }
            place += max(1, length)
        }
    }

    /// The length of the character that begins here; 0 if none does (RFC 3629 §4).
    static func length(at place: Int, in bytes: [UInt8]) -> Int {
        let first = bytes[place]
        let length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0
        guard length > 1 else { return length }
        let rest = bytes[(place + 1)...].prefix(length - 1)
        guard rest.count == length - 1, rest.allSatisfy({ $0 & 0xC0 == 0x80 }), let second = rest.first else {
            return 0
        }
        switch first {
        case 0xE0 where second < 0xA0, 0xED where second > 0x9F, 0xF0 where second < 0x90, 0xF4 where second > 0x8F:
            return 0
        default: return length
        }
    }
}
