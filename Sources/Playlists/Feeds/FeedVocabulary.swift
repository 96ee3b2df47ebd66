import HTTPModel

/// The vocabularies that feeds mix, recognized by their namespaces in the spelling of real feeds.
///
/// Feeds often use prefixes without a declaration, and misspell namespaces: a vocabulary whose namespace is unknown is
/// recognized by its prefix.
struct FeedVocabulary {
    /// The usual prefix for each declared one; `foreign` for a vocabulary that is not read.
    private var declared: [String: String] = [:]
    private var names: [String: FeedElement.Name?] = [:]

    /// How much of it is copied with it.
    var count: Int { declared.count + names.count }

    /// How many names are remembered. A text has few; further ones are resolved each time.
    private static let mostNames = 200
    private static let foreign = "?"

    /// - Parameter prefix: empty for the default namespace.
    mutating func declare(_ prefix: String, as namespace: String) {
        guard declared.count < Self.mostNames else { return }
        let known = Self.prefix(of: namespace)
        let meaning = known ?? (prefix.isEmpty ? "" : Self.usual(prefix))
        guard declared[prefix] != meaning else { return }
        declared[prefix] = meaning
        names = [:]
    }

    mutating func name(of qualified: String) -> FeedElement.Name? {
        if let known = names[qualified] { return known }
        let name = resolve(qualified)
        if names.count < Self.mostNames { names[qualified] = .some(name) }
        return name
    }

    private func resolve(_ qualified: String) -> FeedElement.Name? {
        let parts = qualified.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let prefix = parts.count == 2 ? String(parts[0]) : ""
        let local = ASCII.lowercased(parts.last ?? "")
        let vocabulary = declared[prefix] ?? (prefix.isEmpty ? "" : Self.usual(prefix))
        return FeedElement.Name(rawValue: vocabulary.isEmpty ? local : vocabulary + ":" + local)
    }

    /// The meaning of a prefix without a declaration.
    private static func usual(_ prefix: String) -> String {
        let prefix = ASCII.lowercased(prefix)
        return ["atom", "atom10", "a10", "rss", "xspf"].contains(prefix) ? "" : aliases[prefix] ?? prefix
    }

    private static let aliases = ["googleplay": "itunes", "mrss": "media", "itunesu": foreign, "dcterms": "dc"]

    private static func prefix(of namespace: String) -> String? {
        let name = ASCII.lowercased(namespace)
        return namespaces.first { name.contains($0.part) }?.prefix
    }

    /// The distinctive part of each namespace: case, final slashes and the scheme differ from feed to feed.
    private static let namespaces: [(part: String, prefix: String)] = [
        ("w3.org/2005/atom", ""), ("purl.org/atom/ns", ""), ("purl.org/rss/1.0/modules/syndication", "sy"),
        ("purl.org/rss/1.0/modules/", foreign), ("purl.org/rss/1.0", ""), ("my.netscape.com/rdf", ""),
        ("backend.userland.com", ""), ("itunes.com/dtds/podcast", "itunes"), ("play-podcasts", "itunes"),
        ("search.yahoo.com/mrss", "media"), ("podcastindex", "podcast"), ("purl.org/dc/", "dc"),
        ("purl.org/syndication/history", "fh"), ("22-rdf-syntax-ns", "rdf"), ("xspf.org/ns", ""),
        ("/enc#", ""), ("1999/xhtml", foreign), ("w3.org/2000/svg", foreign), ("math/mathml", foreign),
    ]
}
