/// How some resources are handled: those whose host and path match.
package struct Rule: Sendable, Equatable {
    /// One of them has to match; none stands for all hosts.
    package var hosts: [HostPattern]
    /// Likewise.
    package var paths: [PathPattern]
    package var effects: RuleEffects

    package init(hosts: [HostPattern] = [], paths: [PathPattern] = [], effects: RuleEffects = RuleEffects()) {
        self.hosts = hosts
        self.paths = paths
        self.effects = effects
    }

    /// Sees that what one site is trusted with does not reach all.
    /// - Throws: for fields or a common key of whatever host somebody names.
    package func checkReach() throws(RuleError) {
        let instead = "such as host: api.example or host: \"*.api.example\""
        if let headers = effects.headers, !headers.lines.isEmpty {
            guard !hosts.isEmpty else {
                throw RuleError(
                    "every host would get these fields, which may be secrets; name those that may, \(instead)",
                    key: "headers")
            }
            if let host = hosts.first(where: \.isForAnybody) {
                throw RuleError(
                    "anybody can have a host like '\(host.text)' and get these fields, which may be secrets; name those that may, \(instead)",
                    key: "headers")
            }
        }
        if let key = effects.key, !key.namesHost {
            let host = hosts.first(where: \.isForAnybody)?.text
            guard !hosts.isEmpty && host == nil else {
                let anybody =
                    host.map { "anybody can have a host like '\($0)', and so" } ?? "this is for every host: anybody can"
                throw RuleError(
                    "\(anybody) put what they like where others look; name the hosts that have the same, \(instead), or put {host} into the key",
                    key: "key")
            }
        }
    }

    func matches(_ url: OriginURL) -> Bool {
        (hosts.isEmpty || hosts.contains { $0.matches(url) }) && (paths.isEmpty || paths.contains { $0.matches(url) })
    }

    /// Its effects on a URL that matches. Fields go where a host entrusts them to; what has come over http does not
    /// take the place of what comes over https, so a key of one scheme is for URLs of that scheme.
    func effects(on url: OriginURL) -> RuleEffects {
        var effects = effects
        if effects.headers?.lines.isEmpty == false, !hosts.contains(where: { $0.entrusts(url) }) {
            effects.headers = nil
        }
        if let scheme = effects.key?.scheme, scheme != url.scheme { effects.key = nil }
        return effects
    }
}

extension [Rule] {
    /// Each effect is that of the first rule that matches and names it: general rules come last.
    func effects(on url: OriginURL) -> RuleEffects {
        var effects = RuleEffects()
        for rule in self where rule.matches(url) { effects.complete(with: rule.effects(on: url)) }
        return effects
    }
}
