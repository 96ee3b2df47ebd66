/// What a proxy serves, and how it handles it. The policy may change while the proxy runs.
package struct ProxyPolicy: Sendable, Equatable {
    /// Whether no origin is contacted: cached media plays regardless of its origin's directives, and nothing else
    /// does.
    package var isOffline = false
    /// Whether pinned or downloaded media plays while its origin cannot be reached or no longer has it, even if
    /// the origin forbids that.
    package var playsPinned = true
    /// The fill policy, unless a rule sets one.
    package var fill = FillMode.standard
    /// How many segments of a stream are fetched after the one that a player reads, unless a rule sets it.
    package var aheadSegments = ResolvedRule.standardAheadSegments
    /// Whether the next item of a feed, list or series is downloaded, unless a rule says otherwise.
    package var prefetchesNext = false
    /// Whether requests that demand revalidation of a fresh response get it as it is, unless a rule sets it; nil:
    /// only segments that a playlist names.
    package var ignoresReload: Bool?
    package var rules: [Rule] = []
    /// The caches that are asked before origins, unless a rule names others.
    package var parents: [ParentProxy] = []
    /// The programs that find the media behind pages; the first that matches a URL is used.
    package var resolvers: [Resolver] = []
    /// Which pages have the same media. Learnt, not configured.
    package var aliases = MediaAliases()
    package var mounts: [Mount] = []
    /// For whom the cache stores, where no mount states it; nil for shared if only mounts are served, otherwise private.
    package var cache: CacheMode?
    /// Seconds for which a response is fresh if its origin states no lifetime; nil for the kind's own.
    package var defaultTTL: Int64?
    /// The fields that replace `Cache-Control` in a shared cache.
    package var targetedFields = TargetedField.standard
    /// Whether players may name any origin; if not, only mounts are served.
    package var servesAnyOrigin = true
    /// The ports to which CONNECT opens tunnels; nil if it is refused.
    package var tunnelPorts: Set<Int>?
    /// The greatest request body through a mount, in bytes; nil for no limit, as bodies are streamed.
    package var largestMountBody: Int64?
    /// The secrets that are masked in URLs in logs and listings.
    package var mask = URLMask.standard
    /// The sites whose pages may read everything that the proxy serves them, and learn what is cached.
    package var webOrigins = WebOrigins.none
    /// The terms in which clients are given advice: a command that runs its own proxy has flags.
    package var adviceWords = Advice.Words.settings

    package init() {}

    /// The cache key of a URL, and how the resource is handled.
    /// - Parameter own: the URL's own key, if that is known.
    package func resolve(_ url: OriginURL, own: CacheKey? = nil) -> (key: CacheKey, resolvedRule: ResolvedRule) {
        let effects = RuleEffects(on: url, under: self)
        var resolvedRule = effects.resolvedRule
        resolvedRule.resolver = resolvers.first { $0.matches(url) }
        resolvedRule.terms = terms(of: url)
        resolvedRule.refresh = effects.refresh?.url(for: url).map { MediaLocation(url: $0) }
        let key = effects.key(of: url, own: own)
        return (resolvedRule.resolver == nil ? key : aliases.key(for: key), resolvedRule)
    }

    /// Learns the name that a resolver gave to the media of a page. It is a name among those of the same resolver and
    /// the same scheme only: sites number their media alike, and what came over http must not play for https.
    /// - Returns: whether that is news.
    @discardableResult
    package mutating func learn(_ name: String, ofMediaAt page: OriginURL) -> Bool {
        let resolver = resolvers.first { $0.matches(page) }
        let name = "\(page.scheme) \(resolver?.fingerprint ?? "") \(name)"
        return aliases.learn(name, of: RuleEffects(on: page, under: self).key(of: page))
    }

    /// Finds a resource by the URL that a person gives: first under the key that the rules give it, then under the
    /// URL itself, which may have been copied from a list of keys.
    /// - Parameter look: looks a key up; nil if there is nothing under it.
    package func find<Value, Failure: Error>(_ url: OriginURL, _ look: (CacheKey) throws(Failure) -> Value?)
        throws(Failure) -> Value?
    {
        let plain = url.cacheKey, key = resolve(url).key
        if let value = try look(key) { return value }
        return key == plain ? nil : try look(plain)
    }
}
