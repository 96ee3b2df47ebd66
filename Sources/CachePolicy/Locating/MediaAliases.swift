/// Which pages have the same media: resolvers give it a name (`key`), and all pages whose media has one name share the
/// cache key of the first. A value.
///
/// Names are learnt when a page is resolved, so that a page is known by its alias from then on without its resolver.
package struct MediaAliases: Sendable, Equatable {
    /// A cache key of which others are aliases.
    package struct Entry: Sendable, Equatable, Codable {
        /// The name of the media.
        package var name: String
        /// The cache key of the page that was the first with this media.
        package var key: String
        /// The cache keys of the other pages.
        package var aliases: [String]
    }

    private var entries: [String: Entry] = [:]
    /// The name of each page's media, by the page's cache key.
    private var names: [String: String] = [:]

    /// The most pages. Beyond it, all are forgotten: their media is then fetched again.
    package static let capacity = 10_000

    package init() {}

    /// - Parameter stored: as `stored` returned them; what contradicts itself is left out.
    package init(_ stored: [Entry]) {
        for entry in stored {
            for key in [entry.key] + entry.aliases { learn(entry.name, of: CacheKey(text: key)) }
        }
    }

    /// Ordered by name.
    package var stored: [Entry] { entries.values.sorted { $0.name < $1.name } }

    /// The key under which the media of a page is cached.
    package func key(for page: CacheKey) -> CacheKey {
        guard let name = names[page.text], let entry = entries[name] else { return page }
        return CacheKey(text: entry.key)
    }

    /// Learns the name of a page's media.
    /// - Returns: whether that is news.
    @discardableResult
    package mutating func learn(_ name: String, of page: CacheKey) -> Bool {
        guard names[page.text] != name else { return false }
        if names.count >= Self.capacity { self = MediaAliases() }
        forget(page)
        names[page.text] = name
        if entries[name] == nil {
            entries[name] = Entry(name: name, key: page.text, aliases: [])
        } else {
            entries[name]?.aliases.append(page.text)
        }
        return true
    }

    /// The page has other media now. If others were its aliases, what is cached under its key is no longer theirs.
    private mutating func forget(_ page: CacheKey) {
        guard let name = names.removeValue(forKey: page.text) else { return }
        if entries[name]?.key == page.text {
            for alias in entries[name]?.aliases ?? [] { names[alias] = nil }
            entries[name] = nil
        } else {
            entries[name]?.aliases.removeAll { $0 == page.text }
        }
    }
}
