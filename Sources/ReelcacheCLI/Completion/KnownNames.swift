import Administration
import ArgumentParser
import CachePolicy
import Configuration
import ControlAPI
import DiskCache
import Downloads
import Foundation
import HTTPModel
import Reelcache

/// Kinds of names that completion looks up in the cache. To add one, add a case and the function that lists its names.
enum KnownNames: String {
    case urls, downloads, categories, feeds

    /// How many names a shell gets at most.
    private static let limit = 300

    /// The names that fit at a place; none if they cannot be read at once. Creates no file and takes no lock.
    /// - Parameter patience: how long a request to the proxy may take, in seconds. If it fails, what the databases show
    ///   has to do.
    func candidates(for place: CompletionPlace, within patience: Double) -> [Candidate] {
        guard let configuration = try? Self.configuration(place) else { return [] }
        var proxy = RunningProxy(cacheDirectory: configuration.cacheDirectory)
        // Names with secrets are not offered, so they are not requested either.
        proxy?.showsSecrets = false
        proxy?.timeout = patience
        let names: [Candidate]? =
            switch self {
            case .urls: try? Self.urls(place, configuration, proxy)
            case .downloads: try? Self.downloads(place, configuration, proxy)
            case .categories: try? Self.categories(configuration, proxy)
            case .feeds: try? Self.feeds(configuration, proxy)
            }
        return Array((names ?? []).prefix(Self.limit))
    }

    /// Read from the options in the line, the environment and the configuration file.
    private static func configuration(_ place: CompletionPlace) throws -> ProxyConfiguration {
        var sources = SettingSources()
        func path(_ option: String) -> String? {
            place.options[option]?.last.map { $0.hasPrefix("~/") ? HomeDirectory.path() + $0.dropFirst() : $0 }
        }
        sources.flags["cache_dir"] = path("--cache-dir").map { [$0] }
        sources.configFlag = path("--config")
        return try sources.read().proxy
    }

    // MARK: URLs

    /// Leaves out URLs with secrets: shown, they would reveal these; masked, they would not name a resource.
    private static func urls(_ place: CompletionPlace, _ configuration: ProxyConfiguration, _ proxy: RunningProxy?)
        throws
        -> [Candidate]
    {
        var query = ResourceQuery()
        (query.filter, query.limit) = (place.typed.isEmpty ? nil : place.typed, limit)
        let known =
            try (try? proxy?.resources(query).resources.map(CachedName.init))
            ?? CachedName.all(in: configuration.cacheDirectory, beginningWith: place.typed, limit: limit)
        let mask = try configuration.mask
        let isPinned: Bool? = place.command == ["pin"] ? false : place.command == ["unpin"] ? true : nil
        return known.filter { name in
            !name.url.contains(URLMask.replacement) && mask.masked(name.url) == name.url
                && (isPinned ?? name.isPinned) == name.isPinned
        }.map { Candidate($0.url, $0.cached.size) }
    }

    // MARK: Downloads

    private static func downloads(
        _ place: CompletionPlace, _ configuration: ProxyConfiguration, _ proxy: RunningProxy?
    ) throws -> [Candidate] {
        let mask = try configuration.mask
        return try orders(configuration, proxy).filter { isFor(place.command.last, $0.state) }.map {
            Candidate("\($0.id)", "\($0.state.rawValue), \(mask.masked($0.url).printable)")
        }
    }

    /// Whether a command applies to downloads in this state.
    private static func isFor(_ command: String?, _ state: Download.State) -> Bool {
        switch command {
        case "pause": state == .waiting || state == .downloading
        case "resume": state == .paused
        case "retry": state == .failed
        case "cancel": !state.hasEnded || state == .failed
        case "move": !state.hasEnded
        default: true
        }
    }

    /// Leaves out URLs with secrets, like those of resources.
    private static func feeds(_ configuration: ProxyConfiguration, _ proxy: RunningProxy?) throws -> [Candidate] {
        let mask = try configuration.mask
        let known =
            try (try? proxy?.feeds().map(SubscribedName.init))
            ?? SubscribedName.all(in: configuration.cacheDirectory, limit: limit)
        return known.filter { !$0.url.contains(URLMask.replacement) && mask.masked($0.url) == $0.url }.map {
            Candidate($0.url, ($0.title ?? "").printable)
        }
    }

    private static func categories(_ configuration: ProxyConfiguration, _ proxy: RunningProxy?) throws -> [Candidate] {
        var query = ResourceQuery()
        query.limit = limit
        let cached =
            (try? proxy?.resources(query).resources.compactMap(\.category))
            ?? (try? CachedName.categories(in: configuration.cacheDirectory, limit: limit)) ?? []
        return Set(try orders(configuration, proxy).compactMap(\.category) + cached).sorted().map { Candidate($0) }
    }

    private static func orders(_ configuration: ProxyConfiguration, _ proxy: RunningProxy?) throws -> [OrderedName] {
        try (try? proxy?.allDownloads(limit: limit).downloads.map(OrderedName.init))
            ?? OrderedName.all(in: configuration.cacheDirectory, limit: limit)
    }
}

extension CompletionKind {
    /// Names that `reelcache complete` looks up.
    static func known(_ names: KnownNames) -> CompletionKind { .shellCommand(names.rawValue) }
}
