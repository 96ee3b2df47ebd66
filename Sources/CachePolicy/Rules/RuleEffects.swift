/// What the rules that match a URL say together: each effect is that of the first rule that names it, so general rules
/// come last.
struct RuleEffects {
    var resolvedRule = ResolvedRule()
    var ignoredQuery: IgnoredQuery?
    var key: KeyTemplate?
    var refresh: RefreshTemplate?

    init() {}

    /// - Parameter policy: the rules, and the defaults for what none of them names.
    init(on url: OriginURL, under policy: borrowing ProxyPolicy) {
        resolvedRule = ResolvedRule(policy)
        // From the last on, so that the first replaces what the others say.
        for rule in policy.rules.reversed() where rule.matches(url) { take(rule, on: url) }
        resolvedRule.complete()
    }

    /// Fields are sent only if a host pattern entrusts them to the URL. A key with a fixed scheme applies only to URLs
    /// of that scheme, so that content received over http never replaces content from https.
    private mutating func take(_ rule: Rule, on url: OriginURL) {
        resolvedRule.take(rule)
        if let headers = rule.headers, headers.lines.isEmpty || rule.hosts.contains(where: { $0.entrusts(url) }) {
            resolvedRule.headers = headers
        }
        if let key = rule.key, key.template.scheme == nil || key.template.scheme == url.scheme { self.key = key }
        ignoredQuery = rule.ignoredQuery ?? ignoredQuery
        refresh = rule.refresh ?? refresh
    }

    /// - Parameter own: the URL's own key, if that is known.
    func key(of url: OriginURL, own: CacheKey? = nil) -> CacheKey {
        guard key != nil || ignoredQuery != nil else { return own ?? url.withoutReport.cacheKey }
        let query = (ignoredQuery ?? .nothing).removed(from: url.query)
        // A recording would take the place of its stream.
        if url.isOfRecording, !query.contains(OriginURL.recordingParameter) { return url.cacheKey }
        if let key {
            let made = key.key(of: url, query: query)
            return url.isOfRecording && !made.text.contains(OriginURL.recordingParameter) ? url.cacheKey : made
        }
        return OriginURL(scheme: url.scheme, host: url.host, port: url.port, pathAndQuery: String(url.path) + query)
            .cacheKey
    }
}
