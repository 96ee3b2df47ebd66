import CachePolicy
import Downloads
import Foundation
import HTTPModel

/// JSON as the control interface writes it: names in snake_case and sorted, slashes not escaped, dates in whole seconds
/// since 1970.
package enum ControlJSON {
    /// One line, with a line feed.
    package static func line(_ value: some Encodable) throws -> [UInt8] {
        escaped(try encoder([]).encode(value)) + [UInt8(ascii: "\n")]
    }

    /// One line with the secrets in URLs masked, wherever they stand.
    /// - Parameter mask: nil to mask nothing.
    package static func line(_ value: some Encodable, masked mask: URLMask?) throws -> [UInt8] {
        let line = try line(value)
        return mask?.masked(line) ?? line
    }

    /// As `line(_:masked:)`, with a further member `urls`, whose secrets are not masked.
    /// - Parameter value: encodes as an object with members.
    package static func line(_ value: some Encodable, masked mask: URLMask?, urls: [String]) throws -> [UInt8] {
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
        decoder.dateDecodingStrategy = .custom {
            Date(seconds: try $0.singleValueContainer().decode(Int64.self))
        }
        return try decoder.decode(type, from: Data(bytes))
    }

    /// JSON in which what `Unicode.Scalar.isEscapedInLines` names is written as `\uXXXX`. Beyond ASCII, it only stands
    /// in strings.
    package static func escaped(_ json: some Sequence<UInt8>) -> [UInt8] {
        let json = [UInt8](json)
        // Each of them begins with one of these.
        guard json.contains(where: { $0 == 0xC2 || $0 == 0xE2 || $0 == 0x7F }) else { return json }
        return String(decoding: json, as: UTF8.self).unicodeScalars.reduce(into: []) { bytes, scalar in
            if scalar.value >= 0x7F, scalar.isEscapedInLines {
                bytes += scalar.escapedAsJSON.utf8
            } else if let units = UTF8.encode(scalar) {
                bytes.append(contentsOf: units)
            }
        }
    }

    private static func encoder(_ formatting: JSONEncoder.OutputFormatting) -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var value = encoder.singleValueContainer()
            try value.encode(date.seconds)
        }
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
