import CachePolicy
import HTTPModel

/// The variables of a playlist: `{$name}` in addresses and attributes (draft-pantos-hls-rfc8216bis §4.3, §4.4.2.3).
///
/// Each must be defined before it is used, so that none can contain itself. Their sizes are bounded, individually
/// and in total: with variables inside variables, a text of a few lines could become terabytes.
struct Variables: Sendable {
    private(set) var values: [String: String] = [:]

    mutating func define(_ name: String, as value: String, line: Int) throws(PlaylistError) {
        guard !name.isEmpty, name.utf8.allSatisfy(Self.isName) else {
            throw .malformed("a variable's name contains characters other than A-Z a-z 0-9 - _", line: line)
        }
        guard values[name] == nil else {
            throw .malformed("the variable \(name.prefix(64)) is defined twice", line: line)
        }
        guard values.count < PlaylistLimits.variables else {
            throw .tooLarge("more than \(PlaylistLimits.variables) variables", line: line)
        }
        // The value may be inserted into quotes, and into a line.
        guard value.utf8.allSatisfy({ $0 >= ASCII.space && $0 != ASCII.quote && $0 != 0x7F }) else {
            throw .malformed("the variable \(name.prefix(64)) contains a quote or a control character", line: line)
        }
        values[name] = value
    }

    /// The text with variables replaced. A pattern without a valid name stays as text.
    /// - Throws: if a variable is not defined, or a limit is exceeded.
    func replacing(in text: ArraySlice<UInt8>, line: Int, within budget: WorkBudget) throws(PlaylistError)
        -> ArraySlice<UInt8>
    {
        guard text.contains(Self.brace) else { return text }
        var result: [UInt8] = []
        var rest = text
        while let place = rest.firstIndex(of: Self.brace) {
            result += rest[..<place]
            rest = rest[place...]
            if let name = Self.name(rest) {
                guard let value = values[name] else { throw .undefinedVariable(name, line: line) }
                result += value.utf8
                rest = rest.dropFirst(name.utf8.count + 3)
            } else {
                result.append(Self.brace)
                rest = rest.dropFirst()
            }
            guard result.count <= PlaylistLimits.address else {
                throw .tooLarge("an address is too long with its variables replaced", line: line)
            }
        }
        result += rest
        try budget.make(result.count)
        return result[...]
    }

    private static let brace = UInt8(ascii: "{")

    /// The name of the variable at the beginning of a text.
    private static func name(_ text: ArraySlice<UInt8>) -> String? {
        guard text.starts(with: "{$".utf8) else { return nil }
        let name = text.dropFirst(2).prefix(while: isName)
        guard !name.isEmpty, text[name.endIndex...].first == UInt8(ascii: "}") else { return nil }
        return String(decoding: name, as: UTF8.self)
    }

    private static func isName(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
}

/// A variable that a playlist takes from the query of its own URL. Clients see the proxy's URL, which may have
/// another query.
struct QueryVariable: Sendable {
    /// The range of the attribute, from its name to its closing quote.
    let range: Range<Int>
    let name: String
    let value: String

    /// The decoded value of a parameter; the first, if several have the name.
    static func value(of name: String, in url: OriginURL) -> String? {
        let query = url.pathAndQuery.drop { $0 != "?" }.dropFirst()
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, decoded(parts[0]) == name else { continue }
            return decoded(parts[1])
        }
        return nil
    }

    private static func decoded(_ text: Substring) -> String? {
        PercentEncoding.decoded(text.utf8).flatMap { String(validating: $0, as: UTF8.self) }
    }
}
