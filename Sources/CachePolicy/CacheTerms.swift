import HTTPModel

/// For whom a cache stores responses (RFC 9111 §1).
public enum CacheMode: String, Sendable, CaseIterable {
    /// For several users. What an origin meant for one of them (`private`, or opened by `Authorization`) is passed on
    /// and not stored, and what it states for shared caches (`s-maxage`, `proxy-revalidate`) counts.
    case shared
    /// For one user, or for several who trust each other.
    case `private`
}

/// How this cache reads what responses state about their storage and lifetime.
package struct CacheTerms: Sendable, Equatable {
    package let kind: CacheMode
    /// The fields that replace `Cache-Control` and `Expires` where they are valid, the first of them before the others
    /// (RFC 9213 §2.2). A private cache has none: they are for caches between users and origin.
    package let targetedFields: [String]
    /// The lifetime in seconds of a response whose origin states none, and the least that is estimated for one.
    package let defaultTTL: Int64

    /// - Parameters:
    ///   - targetedFields: those for a shared cache.
    ///   - defaultTTL: nil for the kind's own.
    package init(
        _ kind: CacheMode, targetedFields: [String] = TargetedField.standard, defaultTTL: Int64? = nil
    ) {
        self.kind = kind
        self.targetedFields = kind == .shared ? targetedFields : []
        self.defaultTTL = max(0, defaultTTL ?? Self.standardTTL(of: kind))
    }

    package static let `private` = CacheTerms(.private)
    package static let shared = CacheTerms(.shared)

    /// A private cache trusts a response for ten minutes: a player requests parts of the same file many times, and would
    /// otherwise wait for the origin each time. What is shared is as new as its origin has it.
    package static func standardTTL(of kind: CacheMode) -> Int64 { kind == .private ? 600 : 0 }
}

/// The name of a field with cache directives for some caches (RFC 9213).
package enum TargetedField {
    package static let standard = ["CDN-Cache-Control"]
    /// All of them end with it. What ends with it is stored with each response, so that a change of the settings holds
    /// for what is stored.
    static let suffix = "-cache-control"

    /// - Throws: if it is not the name of such a field.
    package static func check(_ name: String) throws(RuleError) {
        guard name.utf8.allSatisfy(ASCII.isToken), isOne(name) else {
            throw RuleError("'\(name)' is not a targeted field: write a name that ends with -Cache-Control")
        }
    }

    static func isOne(_ name: String) -> Bool {
        name.utf8.count > suffix.utf8.count
            && ASCII.equalIgnoringCase(name.utf8.suffix(suffix.utf8.count), suffix.utf8)
    }

    package static let most = 16
}

extension HeaderFields {
    /// The values of all targeted fields, by name; nil if there are none.
    package var targeted: [String: String]? {
        let names = Set(lines.map(\.name).filter(TargetedField.isOne))
        guard !names.isEmpty else { return nil }
        return Dictionary(uniqueKeysWithValues: names.compactMap { name in combined(name).map { (name, $0) } })
    }
}
