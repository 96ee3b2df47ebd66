/// What a proxy serves, and how it handles what it serves. It may become another while the proxy runs.
package struct ProxyPolicy: Sendable, Equatable {
    /// Never asks an origin: what is cached plays, whatever its origin said, and nothing else does.
    package var isOffline = false
    /// Plays what somebody has pinned or downloaded while its origin cannot be asked, although the origin forbade that.
    package var playsPinned = true
    /// Where no rule says otherwise.
    package var fill = FillPolicy.standard
    /// How many segments of a stream are fetched after the one that a player reads, where no rule says otherwise.
    package var aheadSegments = ResolvedRule.standardAheadSegments
    /// Whether requests that want what is fresh to be asked for again get it as it is, where no rule says otherwise; nil:
    /// only segments that a playlist names.
    package var ignoresReload: Bool?
    package var rules: [Rule] = []
    package var mounts: [Mount] = []
    /// Whether players may name any origin; else only what is mounted is served.
    package var servesAnyOrigin = true
    /// The ports to which CONNECT makes tunnels; nil where it makes none.
    package var tunnelPorts: Set<Int>?
    /// Bytes that the body of a request through a mount may have; nil for any number, as bodies stream through.
    package var largestMountBody: Int64?
    /// What is left out of URLs in logs and listings.
    package var mask = URLMask.standard
    /// Pages that may read all that the proxy gives them, and learn what is cached.
    package var webOrigins = WebOrigins.none
    /// In whose words clients are told what helps: a command that is its own proxy has flags.
    package var adviceWords = Advice.Words.settings

    package init() {}

    /// What a URL is found by, and how it is handled.
    package func resolve(_ url: OriginURL) -> (key: CacheKey, resolvedRule: ResolvedRule) {
        let effects = rules.effects(on: url)
        return (effects.key(of: url), effects.resolvedRule(under: self))
    }

    /// Looks for what a person calls by a URL: under the key that the rules give it, then under the URL itself, which
    /// may have been read off a list of keys.
    /// - Parameter look: what is there under a key; nil for nothing.
    package func find<Value, Failure: Error>(_ url: OriginURL, _ look: (CacheKey) throws(Failure) -> Value?)
        throws(Failure) -> Value?
    {
        let (key, plain) = (resolve(url).key, url.cacheKey)
        if let value = try look(key) { return value }
        return key == plain ? nil : try look(plain)
    }
}
