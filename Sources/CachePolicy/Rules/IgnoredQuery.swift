import HTTPModel

/// The query parameters that the cache key leaves out.
public enum IgnoredParameters: Sendable, Equatable {
    /// None: every parameter distinguishes resources.
    case nothing
    /// The whole query.
    case all
    /// The parameters with these names, in which `*` stands for any run of characters, such as `utm_*`.
    case parameters([String])
}

/// Query parameters that do not distinguish resources, such as tokens that expire.
package enum IgnoredQuery: Sendable, Equatable {
    case nothing
    case all
    case parameters([Glob])

    init(_ ignored: IgnoredParameters) throws(RuleError) {
        switch ignored {
        case .nothing: self = .nothing
        case .all: self = .all
        case .parameters(let names):
            self = .parameters(try names.map { name throws(RuleError) in try Glob(parameter: name) })
        }
    }

    /// Parameters that select one state of a live playlist always stay (`_HLS_msn` and the like,
    /// draft-pantos-hls-rfc8216bis §6.2.5), because each state is a different text.
    /// What players report of themselves always goes.
    /// - Parameter query: with its `?`, or empty.
    /// - Returns: the remaining query, in the same form.
    func removed(from query: Substring) -> String {
        let parameters = query.dropFirst().split(separator: "&", omittingEmptySubsequences: false)
        let kept = parameters.filter {
            $0.hasPrefix(Self.deliveryDirective) || !$0.hasPrefix(Self.report) && !ignores($0.prefix { $0 != "=" })
        }
        guard kept.count < parameters.count else { return String(query) }
        return kept.isEmpty ? "" : "?" + kept.joined(separator: "&")
    }

    package static let deliveryDirective = "_HLS_"
    /// Begins the parameter in which a player reports of itself (CTA-5004 §3.2).
    fileprivate static let report = "CMCD="

    private func ignores(_ name: Substring) -> Bool {
        switch self {
        case .nothing: false
        case .all: true
        case .parameters(let patterns): patterns.contains { $0.matches(name) }
        }
    }
}

extension OriginURL {
    /// The URL without what a player reports of itself in it: that selects nothing.
    package var withoutReport: OriginURL {
        let query = query
        guard !query.isEmpty, query.contains(IgnoredQuery.report) else { return self }
        let rest = IgnoredQuery.nothing.removed(from: query)
        return OriginURL(scheme: scheme, host: host, port: port, pathAndQuery: String(path) + rest)
    }
}

extension Glob {
    /// The names of query parameters: `token`, `utm_*`.
    package init(parameter text: String) throws(RuleError) {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 > ASCII.space && $0 != 0x7F && !"&=?#".utf8.contains($0) })
        else {
            throw RuleError("'\(text)' is not a parameter name; write it like token or utm_*")
        }
        self.init(PercentEncoding.normalized(PercentEncoding.encodingNonASCII(text.utf8)))
    }
}
