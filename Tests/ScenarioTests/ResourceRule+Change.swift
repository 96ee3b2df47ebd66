import Reelcache

extension ResourceRule {
    /// A rule with what `change` gives it.
    init(hosts: [String] = [], paths: [String] = [], _ change: (inout ResourceRule) -> Void) {
        self.init(hosts: hosts, paths: paths)
        change(&self)
    }
}
