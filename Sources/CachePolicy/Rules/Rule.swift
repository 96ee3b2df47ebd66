import HTTPModel

/// How resources are handled whose host and path match: a `ResourceRule` whose parts are valid.
package struct Rule: Sendable, Equatable {
    /// At least one of them must match; an empty list matches all hosts.
    let hosts: [HostPattern]
    /// At least one of them must match; an empty list matches all paths.
    let paths: [Glob]
    /// As it was written, with the effects that need no parser.
    let written: ResourceRule
    let ignoredQuery: IgnoredQuery?
    let key: KeyTemplate?
    let headers: HeaderFields?
    let refresh: RefreshTemplate?
    /// Empty to ask none.
    let parents: [ParentProxy]?
    /// The lines of its cookie file.
    let cookies: [String]?

    /// - Parameter cookies: the lines of its cookie file.
    /// - Throws: for a value that cannot work, or that does not go together with others.
    package init(_ rule: ResourceRule, cookies: [String]? = nil) throws(RuleError) {
        (written, self.cookies) = (rule, cookies)
        hosts = try rule.hosts.map { text throws(RuleError) in try HostPattern(text) }
        paths = try rule.paths.map { text throws(RuleError) in try Glob(path: text) }
        if let ttl = rule.ttl, ttl < .zero {
            throw RuleError("a ttl is 0 s or longer, not \(ttl.components.seconds) s")
        }
        if let size = rule.maxObject, size < 0 { throw RuleError("max_object is 0 bytes or more, not \(size)") }
        if let height = rule.maxHeight, height <= 0 { throw RuleError("max_height is 1 or more, not \(height)") }
        if let rate = rule.maxBitrate, rate <= 0 { throw RuleError("max_bitrate is 1 or more, not \(rate)") }
        _ = try rule.fill?.checked()
        _ = try rule.aheadSegments.map(Self.checked)
        ignoredQuery = try rule.ignoredQuery.map { ignored throws(RuleError) in try IgnoredQuery(ignored) }
        key = try rule.key.map { text throws(RuleError) in try KeyTemplate(text) }
        headers = try rule.headers.map { fields throws(RuleError) in try HeaderFields(configured: fields) }
        refresh = try rule.refresh.map { text throws(RuleError) in try RefreshTemplate(text) }
        parents = try rule.parents.map { texts throws(RuleError) in try ParentProxy.list(texts) }
        try checkReach()
    }

    package static func checked(aheadSegments count: Int) throws(RuleError) -> Int {
        let range = 0...ResolvedRule.mostAheadSegments
        guard range.contains(count) else {
            throw RuleError(
                "the number of segments to fetch ahead is \(range.lowerBound) to \(range.upperBound), not \(count)")
        }
        return count
    }

    /// Checks that secrets and shared keys that are meant for one site do not extend to all.
    /// - Throws: if fields or a shared key apply to hosts that anybody can name.
    private func checkReach() throws(RuleError) {
        let instead = "such as host: api.example or host: \"*.api.example\""
        if let headers, !headers.lines.isEmpty {
            guard !hosts.isEmpty else {
                throw RuleError(
                    "every host would get these fields, which may be secrets; name the hosts that may get them, \(instead)",
                    key: "headers")
            }
            if let host = hosts.first(where: \.isForAnybody) {
                throw RuleError(
                    "anybody can run a host like '\(host.text)' and get these fields, which may be secrets; name the hosts that may get them, \(instead)",
                    key: "headers")
            }
        }
        if let key, !key.template.namesHost {
            try checkHosts("choose what others get", "key", instead)
        }
        if let refresh, !refresh.template.namesHost {
            try checkHosts("have that address requested", "refresh", instead)
        }
    }

    /// Checks that a shared address is for hosts that somebody in particular runs.
    private func checkHosts(_ abuse: String, _ effect: String, _ instead: String) throws(RuleError) {
        let host = hosts.first(where: \.isForAnybody)?.text
        guard !hosts.isEmpty && host == nil else {
            let anybody =
                host.map { "anybody can run a host like '\($0)', and so" } ?? "this is for all hosts: anybody can"
            throw RuleError(
                "\(anybody) \(abuse); name the hosts that serve the same, \(instead), or put {host} into the \(effect)",
                key: effect)
        }
    }

    func matches(_ url: OriginURL) -> Bool {
        (hosts.isEmpty || hosts.contains { $0.matches(url) })
            && (paths.isEmpty || paths.contains { $0.matches(url.path) })
    }
}

private extension HeaderFields {
    /// Ordered by name.
    init(configured fields: [String: String]) throws(RuleError) {
        self.init()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            try ConfiguredField.check(name: name, value: value)
            replace(name, value)
        }
    }
}
