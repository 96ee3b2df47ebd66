/// How resources are handled whose host and path match.
package struct Rule: Sendable, Equatable {
    /// At least one of them must match; an empty list matches all hosts.
    package var hosts: [HostPattern]
    /// At least one of them must match; an empty list matches all paths.
    package var paths: [PathPattern]
    package var effects: RuleEffects

    package init(hosts: [HostPattern] = [], paths: [PathPattern] = [], effects: RuleEffects = RuleEffects()) {
        self.hosts = hosts
        self.paths = paths
        self.effects = effects
    }

    /// Checks that secrets and shared keys that are meant for one site do not extend to all.
    /// - Throws: if fields or a shared key apply to hosts that anybody can name.
    package func checkReach() throws(RuleError) {
        let instead = "such as host: api.example or host: \"*.api.example\""
        if let headers = effects.headers, !headers.lines.isEmpty {
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
        if let key = effects.key, !key.template.namesHost {
            try checkHosts("choose what others get", "key", instead)
        }
        if let refresh = effects.refresh, !refresh.template.namesHost {
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
        (hosts.isEmpty || hosts.contains { $0.matches(url) }) && (paths.isEmpty || paths.contains { $0.matches(url) })
    }

    /// The effects on a URL that matches. Fields are sent only if a host pattern entrusts them to the URL. A key
    /// with a fixed scheme applies only to URLs of that scheme, so that content received over http never replaces
    /// content from https.
    func effects(on url: OriginURL) -> RuleEffects {
        var effects = effects
        if effects.headers?.lines.isEmpty == false, !hosts.contains(where: { $0.entrusts(url) }) {
            effects.headers = nil
        }
        if let scheme = effects.key?.template.scheme, scheme != url.scheme { effects.key = nil }
        return effects
    }
}

extension [Rule] {
    /// Each effect comes from the first matching rule that sets it: general rules come last.
    func effects(on url: OriginURL) -> RuleEffects {
        var effects = RuleEffects()
        for rule in self where rule.matches(url) { effects.complete(with: rule.effects(on: url)) }
        return effects
    }
}
