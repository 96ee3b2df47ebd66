/// The parameters of a request to the control interface: the text after the `?` of its target, as `name=value`
/// joined by `&`.
///
/// Names and values are percent-decoded once. `+` is a plus sign, as everywhere in URLs except in forms.
package struct QueryParameters: Sendable, Equatable {
    private var values: [String: String] = [:]

    /// No parameters.
    package init() {}

    /// - Parameter target: a request target; without a `?` it has no parameters.
    /// - Throws: `Malformed`: a percent sign that does not begin an encoded byte, bytes that are not UTF-8, a
    ///   repeated name.
    package init(target: String) throws(Malformed) {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return }
        let query = target.utf8[target.utf8.index(after: mark)...]
        for pair in query.split(separator: UInt8(ascii: "&")) {
            let name = try Self.decoded(pair.prefix { $0 != Self.equals })
            let value = try Self.decoded(pair.drop { $0 != Self.equals }.dropFirst())
            guard values.updateValue(value, forKey: name) == nil else {
                throw Malformed(reason: "the parameter \(name) occurs twice")
            }
        }
    }

    /// The parameter's value; nil if it is missing, empty if it has no value.
    package subscript(_ name: String) -> String? { values[name] }

    /// The names other than these, in order: a misspelt parameter must not be taken for a missing one.
    package func names(except known: [String]) -> [String] {
        values.keys.filter { !known.contains($0) }.sorted()
    }

    private static let equals = UInt8(ascii: "=")

    private static func decoded(_ bytes: Substring.UTF8View) throws(Malformed) -> String {
        guard let decoded = PercentEncoding.decoded(bytes), let text = String(validating: decoded, as: UTF8.self) else {
            throw Malformed(
                reason:
                    "the query contains a % that does not begin an encoded byte, or bytes that are not UTF-8: percent-encode its values, % as %25"
            )
        }
        return text
    }
}

extension QueryParameters {
    /// Why a query cannot be read, in one line.
    package struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        package let reason: String

        package var description: String { reason }
    }
}
