import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import Reelcache

/// The cached resources that a command works on: by name, or all that match.
struct ResourceSelection: ParsableArguments {
    @Argument(
        help:
            "Media URLs, as their origins have them or as players open them. In a pattern, * stands for any characters: 'https://example.org/*'.",
        completion: .known(.urls))
    var urls: [String] = []
    @Option(help: ArgumentHelp("Select all URLs that contain this text; case does not matter.", valueName: "text"))
    var filter: String?
    @Option(
        help: ArgumentHelp(
            "Select resources that were downloaded in this category.",
            valueName: "name"),
        completion: .known(.categories))
    var category: String?

    /// How many ways of selecting resources are used.
    var wayCount: Int { [!urls.isEmpty, filter != nil, category != nil].count { $0 } }

    /// Whether more resources may be selected than the user has named.
    var isBulk: Bool { filter != nil || category != nil || urls.contains(where: Self.isPattern) }

    func validate() throws {
        if filter?.isEmpty == true { throw ValidationError("--filter is empty: write a part of the URLs") }
        if category?.isEmpty == true { throw ValidationError("--category is empty: write its name") }
    }

    private static func isPattern(_ text: String) -> Bool { text.contains("*") }

    /// A selected resource.
    enum Match {
        case url(OriginURL, text: String)
        /// A text that does not name a resource, and why.
        case failure(ControlError, text: String)
    }

    /// The resources that are selected.
    /// - Parameter allPinned: selects all that is pinned instead of names, patterns and filters.
    /// - Throws: `ControlError` if nothing matches.
    func matches(_ proxy: RunningProxy, allPinned: Bool = false) throws -> [Match] {
        if let category { return try matches(proxy, downloadedIn: category) }
        if allPinned {
            return try found(Self.resources(proxy).filter(\.isPinned), orElse: "nothing is pinned")
        }
        if let filter {
            return try found(
                Self.resources(proxy, filter: filter), orElse: "no cached URL contains '\(filter)'")
        }
        // A pattern may select again what was named before it.
        var seen: Set<OriginURL> = []
        return try urls.flatMap { try named($0, proxy) }.filter { match in
            guard case .url(let url, _) = match else { return true }
            return seen.insert(url).inserted
        }
    }

    private static func resources(
        _ proxy: RunningProxy, filter: String? = nil, category: String? = nil
    ) throws -> [CachedResource] {
        var query = ResourceQuery()
        (query.order, query.filter, query.category) = (.name, filter, category)
        return try ResourceListing.all(query, page: proxy.resources).resources
    }

    private func named(_ text: String, _ proxy: RunningProxy) throws -> [Match] {
        do {
            let url = try proxy.url(text)
            // A path may contain a * too: if exactly this URL is cached, the text names it and is not a pattern.
            guard Self.isPattern(text), try !proxy.isCached(url) else { return [.url(url, text: text)] }
            let glob = Glob(url.cacheKey.text)
            let found = try Self.resources(proxy).filter {
                glob.matches(Array($0.plainURL.utf8))
            }
            return try self.found(found, orElse: "no cached URL matches \(text)")
        } catch let error as ControlError {
            return [.failure(error, text: text)]
        }
    }

    private func found(_ resources: [CachedResource], orElse complaint: String) throws -> [Match] {
        guard !resources.isEmpty else { throw ControlError(complaint) }
        var seen: Set<String> = []
        // A URL stands for all its variants.
        return resources.map(\.plainURL).filter { seen.insert($0).inserted }.compactMap { text in
            (try? OriginURL(url: text)).map { .url($0, text: text) }
        }
    }

    private func matches(_ proxy: RunningProxy, downloadedIn category: String) throws -> [Match] {
        let labelled = try Self.resources(proxy, category: category)
        // Those that run, and what an earlier version downloaded.
        let reports = try proxy.allDownloads().downloads.filter { $0.category == category }
        guard !reports.isEmpty || !labelled.isEmpty else {
            throw ControlError("no download has the category '\(category)': reelcache ls --json names them")
        }
        var seen = Set(labelled.map(\.plainURL))
        let cached = try reports.map(\.urlText).compactMap { text in
            (try? OriginURL(url: text)).map { (text, $0) }
        }.filter { try seen.insert($0.1.cacheKey.text).inserted && proxy.isCached($0.1) }
        guard !cached.isEmpty || !labelled.isEmpty else {
            throw ControlError("nothing downloaded in the category '\(category)' is cached")
        }
        return try (labelled.isEmpty ? [] : found(labelled, orElse: ""))
            + cached.map { .url($0.1, text: $0.0) }
    }
}

extension Batch {
    /// Runs the body for each match, and collects results and failures.
    init(_ matches: [ResourceSelection.Match], _ body: (OriginURL, String) throws -> Value) throws {
        self.init(done: [])
        for match in matches {
            switch match {
            case .failure(let error, let text): add(error, of: text)
            case .url(let url, let text):
                do { add(try body(url, text)) } catch let error as ControlError { add(error, of: text) }
            }
        }
    }
}

private extension RunningProxy {
    func isCached(_ url: OriginURL) throws -> Bool {
        do {
            _ = try resource(url)
            return true
        } catch let error as ControlError where error.isNotCached { return false }
    }
}

private extension CachedResource {
    /// The URL without the request fields of its variant.
    var plainURL: String { String(urlText.prefix { $0 != " " }) }
}
