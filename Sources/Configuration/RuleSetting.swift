import CachePolicy
import Reelcache

extension SettingReader<[ResourceRule]> {
    static var rules: Self {
        SettingReader(placeholder: "rule", isFileOnly: true) { value throws(SettingProblems) in
            guard value.origin.isFile else {
                throw value.problem("rules can be set in the configuration file only; write them there")
            }
            return try SettingProblems.collect(
                value.list(form: "rules: [{host: example.org, ttl: 1d}, ...]"), RuleKey.rule)
        } texts: {
            $0.map(RuleKey.text)
        } summary: {
            $0.isEmpty ? "(none)" : "\($0.count) rule\($0.count == 1 ? "" : "s")"
        }
    }
}

/// A key of a rule: a condition, or an effect.
package struct RuleKey: Sendable {
    package let name: String
    /// Whether it says what to do, rather than which resources the rule is for.
    package let isEffect: Bool
    private let read: @Sendable (SettingValue, inout ResourceRule) throws(SettingProblems) -> Void
    /// As it is written; nil if the rule does not have it.
    private let write: @Sendable (ResourceRule) -> String?

    package static let all: [RuleKey] = [
        RuleKey(patterns: .hostPattern, "host", at: \.hosts),
        RuleKey(patterns: .pathPattern, "path", at: \.paths),
        RuleKey("bypass", .bool, at: \.bypass),
        RuleKey("ttl", .ttl, at: \.ttl),
        RuleKey("ignore_no_store", .bool, at: \.ignoresNoStore),
        RuleKey("play_stale", .bool, at: \.playsStale),
        RuleKey("ignore_query", .ignoredQuery, at: \.ignoredQuery),
        RuleKey("key", .keyTemplate, at: \.key),
        RuleKey("fill", .fill, at: \.fill),
        RuleKey("metered", .bool, at: \.isMetered),
        RuleKey("ahead_segments", .number(in: ProxyConfiguration.aheadSegmentsRange), at: \.aheadSegments),
        RuleKey("prefetch_next", .bool, at: \.prefetchesNext),
        RuleKey("ignore_reload", .bool, at: \.ignoresReload),
        RuleKey("headers", .headers, at: \.headers),
        RuleKey("pin", .bool, at: \.pin),
        RuleKey("store_pages", .bool, at: \.storesPages),
        RuleKey("max_object", .size(atLeast: 0), at: \.maxObject),
        RuleKey("heuristic", .bool, at: \.heuristic),
        RuleKey("refresh", .refreshTemplate, at: \.refresh),
        RuleKey("parents", .parents, at: \.parents),
    ]

    /// A sentence or two in the imperative.
    package var summary: String { SettingText.of(ruleKey: name).summary }
    /// Paragraphs with code between backticks. May be empty.
    package var details: String { SettingText.of(ruleKey: name).details }
    /// A value in YAML.
    package var example: String { SettingText.of(ruleKey: name).example }

    // MARK: Rules

    static func rule(_ value: SettingValue) throws(SettingProblems) -> ResourceRule {
        var rule = ResourceRule()
        let members = try value.members(form: "- host: example.org, and below it what to do")
        let keys = try SettingProblems.collect(members) { member throws(SettingProblems) in
            guard let key = all.first(where: { $0.name == member.name }) else {
                throw member.problem(unknown(member.name))
            }
            try key.read(member.value, &rule)
            return key
        }
        guard keys.contains(where: \.isEffect) else {
            throw value.problem("has no effect; add one of \(effects.joined(separator: ", ")), or remove the rule")
        }
        // Each value is valid; they may not be valid together.
        do throws(RuleError) { _ = try Rule(rule) } catch {
            throw members.first { $0.name == error.key }?.problem(error.reason) ?? value.problem(error.reason)
        }
        return rule
    }

    private static let effects = all.filter(\.isEffect).map(\.name)

    private static func unknown(_ name: String) -> String {
        let names = all.map(\.name)
        let guess = EditDistance.nearest(to: name.lowercased().replacing("-", with: "_"), in: names)
        return "is not a key of a rule; "
            + (guess.map { "did you mean \($0)?" } ?? "the keys are \(names.joined(separator: ", "))")
    }

    /// A rule on one line.
    static func text(_ rule: ResourceRule) -> String {
        "{\(all.compactMap { $0.write(rule) }.joined(separator: ", "))}"
    }

    // MARK: Making keys

    private init(
        _ name: String, isEffect: Bool,
        read: @escaping @Sendable (SettingValue, inout ResourceRule) throws(SettingProblems) -> Void,
        write: @escaping @Sendable (ResourceRule) -> String?
    ) {
        self.name = name
        self.isEffect = isEffect
        self.read = read
        self.write = { rule in write(rule).map { "\(name): \($0)" } }
    }

    /// An effect with one value.
    private init<Value>(
        _ name: String, _ kind: SettingKind<Value>, at path: WritableKeyPath<ResourceRule, Value?> & Sendable
    ) {
        self.init(name, kind.reader(form: "\(name): \(kind.placeholder)"), at: path)
    }

    private init<Value>(
        _ name: String, _ reader: SettingReader<Value>, at path: WritableKeyPath<ResourceRule, Value?> & Sendable
    ) {
        self.init(name, isEffect: true) { value, rule throws(SettingProblems) in
            rule[keyPath: path] = try reader.read(value)
        } write: { rule in
            rule[keyPath: path].map { reader.texts($0).joined(separator: ", ") }
        }
    }

    /// One pattern, or a list of them.
    private init(
        patterns kind: SettingKind<String>, _ name: String, at path: WritableKeyPath<ResourceRule, [String]> & Sendable
    ) {
        self.init(name, isEffect: false) { value, rule throws(SettingProblems) in
            rule[keyPath: path] = try kind.patterns(value, name: name)
        } write: { rule in
            let patterns = rule[keyPath: path]
            return patterns.isEmpty ? nil : patterns.count == 1 ? patterns[0] : "[\(patterns.joined(separator: ", "))]"
        }
    }
}

extension SettingKind<String> {
    /// Reads one pattern, or a list of them.
    func patterns(_ value: SettingValue, name: String) throws(SettingProblems) -> [String] {
        guard case .list(let list) = value.content else {
            return [try reader(form: "\(name): \(placeholder)").read(value)]
        }
        guard !list.isEmpty else {
            throw value.problem("is an empty list; write \(name): \(placeholder), or remove it to match all")
        }
        return try listReader.read(value)
    }
}

private extension SettingReader<IgnoredParameters> {
    static var ignoredQuery: Self {
        SettingReader(placeholder: "true|[name, ...]") { value throws(SettingProblems) in
            switch value.content {
            case .text("true"): return .all
            case .text("false"): return .nothing
            case .list: return .parameters(try SettingKind<String>.parameterPattern.listReader.read(value))
            case .text, .nothing, .mapping:
                throw value.problem(
                    "is neither true nor a list of parameters; write ignore_query: true or ignore_query: [token, utm_*]"
                )
            }
        } texts: {
            switch $0 {
            case .all: ["true"]
            case .nothing: ["false"]
            case .parameters(let names): ["[\(names.joined(separator: ", "))]"]
            }
        }
    }
}

private extension SettingReader<[String]> {
    /// A list of parents, perhaps an empty one.
    static var parents: Self {
        let list = SettingKind<String>.parent.listReader
        return SettingReader(placeholder: "[http://host:port, ...]") { value throws(SettingProblems) in
            guard case .list = value.content else {
                throw value.problem("is not a list; write parents: [http://10.0.0.5:7335], or parents: [] to ask none")
            }
            return try list.read(value)
        } texts: {
            ["[\($0.joined(separator: ", "))]"]
        }
    }
}

private extension SettingReader<[String: String]> {
    static var headers: Self {
        SettingReader(placeholder: "{Name: value}") { value throws(SettingProblems) in
            var names: Set<String> = []
            let fields = try SettingProblems.collect(value.members(form: "headers: {Referer: https://example.org/}")) {
                member throws(SettingProblems) in
                let text = try member.value.text(form: "\(member.name): VALUE")
                do throws(RuleError) { try ConfiguredField.check(name: member.name, value: text) } catch {
                    throw member.problem(error.reason)
                }
                guard names.insert(member.name.lowercased()).inserted else {
                    throw member.problem("is repeated with other capitals; remove one of them")
                }
                return (member.name, text)
            }
            return Dictionary(uniqueKeysWithValues: fields)
        } texts: {
            // Values may be secrets, and this is logged.
            ["{\($0.keys.sorted().map { "\($0): ..." }.joined(separator: ", "))}"]
        }
    }
}
