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

    func matches(_ url: OriginURL) -> Bool {
        (hosts.isEmpty || hosts.contains { $0.matches(url) }) && (paths.isEmpty || paths.contains { $0.matches(url) })
    }
}

extension [Rule] {
    /// Each effect is that of the first rule that matches and names it: general rules come last.
    func effects(on url: OriginURL) -> RuleEffects {
        var effects = RuleEffects()
        for rule in self where rule.matches(url) { effects.complete(with: rule.effects) }
        return effects
    }
}
