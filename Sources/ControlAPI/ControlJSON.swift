import CachePolicy
import Foundation

/// JSON as the control interface writes it: names in snake_case and sorted, slashes not escaped.
package enum ControlJSON {
    /// One line, with a line feed.
    package static func line(_ value: some Encodable) throws -> [UInt8] {
        escaped(try encoder([]).encode(value)) + [UInt8(ascii: "\n")]
    }

    /// One line with the secrets in URLs masked, wherever they stand.
    /// - Parameter mask: nil to mask nothing.
    static func line(_ value: some Encodable, masked mask: URLMask?) throws -> [UInt8] {
        let line = try line(value)
        return mask?.masked(line) ?? line
    }

    /// As `line(_:masked:)`, with a further member `urls`, whose secrets are not masked.
    /// - Parameter value: encodes as an object with members.
    static func line(_ value: some Encodable, masked mask: URLMask?, urls: [String]) throws -> [UInt8] {
        let members = try line(value, masked: mask).dropLast(2)
        return members + Array(",\"urls\":".utf8) + (try line(urls).dropLast()) + Array("}\n".utf8)
    }

    /// Several lines, for people, without a final line feed.
    package static func pretty(_ value: some Encodable) throws -> String {
        String(decoding: escaped(try encoder(.prettyPrinted).encode(value)), as: UTF8.self)
    }

    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) throws -> Value {
        let decoder = JSONDecoder()
        // Not `.convertFromSnakeCase`, which turns `finalURL` into `finalUrl`.
        decoder.keyDecodingStrategy = .custom { path in Key(camelCase(path.last?.stringValue ?? "")) }
        return try decoder.decode(type, from: Data(bytes))
    }

    /// JSON in which the characters that a terminal would obey (DEL and C1), that end lines (U+2028, U+2029), or that
    /// turn the following text around (U+202A to U+202E, U+2066 to U+2069) are written as `\uXXXX`. In JSON, they only
    /// stand in strings.
    static func escaped(_ json: some Sequence<UInt8>) -> [UInt8] {
        let json = [UInt8](json)
        // Each of them begins with one of these.
        guard json.contains(where: { $0 == 0xC2 || $0 == 0xE2 || $0 == 0x7F }) else { return json }
        var (result, place) = ([UInt8](), 0)
        result.reserveCapacity(json.count)
        while place < json.count {
            let next = json[place...].prefix(3).map(UInt32.init)
            let found: (scalar: UInt32, length: Int)? =
                switch (next[0], next.dropFirst().first ?? 0, next.dropFirst(2).first ?? 0) {
                case (0x7F, _, _): (0x7F, 1)
                case (0xC2, 0x80...0x9F, _): (next[1], 2)
                case (0xE2, 0x80, 0xA8...0xAE): (0x2000 + next[2] - 0x80, 3) // no trap: at least 0xA8
                case (0xE2, 0x81, 0xA6...0xA9): (0x2040 + next[2] - 0x80, 3) // no trap: at least 0xA6
                default: nil
                }
            if let found {
                let digits = String(found.scalar, radix: 16)
                result += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
            } else {
                result.append(json[place])
            }
            place += found?.length ?? 1
        }
        return result
    }

    private static func encoder(_ formatting: JSONEncoder.OutputFormatting) -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = formatting.union([.sortedKeys, .withoutEscapingSlashes])
        return encoder
    }

    private static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        return words.prefix(1).joined()
            + words.dropFirst().map { $0 == "url" ? "URL" : $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    /// Whether a name is in snake_case, as all names are here.
    static func isWellSpelt(_ name: String) -> Bool { snakeCase(camelCase(name)) == name }

    static func snakeCase(_ name: String) -> String {
        name.replacing("URL", with: "Url").map { $0.isUppercase ? "_" + $0.lowercased() : String($0) }.joined()
    }

    private struct Key: CodingKey {
        let stringValue: String
        let intValue: Int? = nil

        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }
}
