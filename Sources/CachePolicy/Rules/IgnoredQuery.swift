import HTTPModel

/// Parameters of a query that do not tell one resource from another, such as tokens that expire.
package enum IgnoredQuery: Sendable, Equatable {
    case nothing
    case all
    case parameters([ParameterPattern])

    /// The name of a parameter, with `*` for any run of characters.
    package struct ParameterPattern: Sendable, Equatable {
        private let glob: Glob

        package init(_ text: String) throws(RuleError) {
            guard !text.isEmpty, text.utf8.allSatisfy({ $0 > ASCII.space && $0 != 0x7F && !"&=?#".utf8.contains($0) })
            else {
                throw RuleError("'\(text)' is not a parameter name; write it like token or utm_*")
            }
            glob = Glob(PercentEncoding.normalized(PercentEncoding.encodingNonASCII(text.utf8)))
        }

        func matches(_ name: Substring) -> Bool { glob.matches(Array(PercentEncoding.normalized(String(name)).utf8)) }
    }

    /// - Parameter query: with its `?`, or empty.
    /// - Returns: what is left, likewise.
    func removed(from query: Substring) -> String {
        switch self {
        case .nothing: return String(query)
        case .all: return ""
        case .parameters(let patterns):
            let parameters = query.dropFirst().split(separator: "&", omittingEmptySubsequences: false)
            let kept = parameters.filter { parameter in
                let name = parameter.prefix { $0 != "=" }
                return !patterns.contains { $0.matches(name) }
            }
            guard kept.count < parameters.count else { return String(query) }
            return kept.isEmpty ? "" : "?" + kept.joined(separator: "&")
        }
    }
}
