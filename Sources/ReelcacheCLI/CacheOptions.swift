import ArgumentParser
import Configuration
import Reelcache

/// Options of every command: the cache directory, and the configuration file that may name it.
struct CacheOptions: ParsableArguments {
    @Option(name: .customLong("cache-dir"), help: .setting("cache_dir"), completion: .directory)
    var directory: String?
    @Option(
        name: .customLong("config"),
        help: ArgumentHelp(
            "Read this configuration file. (default: $\(SettingSources.configVariable), else $XDG_CONFIG_HOME/reelcache/reelcache.yaml, "
                + "else /etc/reelcache/reelcache.yaml)", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var file: String?

    func validate() throws { try sources().validateFlags() }

    /// - Parameter flags: the command's own flags, by key.
    func sources(_ flags: [String: [String]] = [:]) -> SettingSources {
        var sources = SettingSources()
        sources.flags = flags
        sources.flags["cache_dir"] = directory.map { [$0] }
        sources.configFlag = file
        return sources
    }

    /// The cache directory.
    /// - Throws: `SettingsError`.
    var path: String {
        get throws { try sources().read().proxy.cacheDirectory }
    }
}

/// Options of `serve`: a flag for each setting.
struct ServeOptions: ParsableArguments {
    @Option(help: .setting("listen")) var listen: String?
    @Option(help: .setting("names")) var name: [String] = []
    @Option(help: .setting("trusted")) var trusted: [String] = []
    @Flag(inversion: .prefixedNo, help: .setting("proxy_protocol")) var proxyProtocol: Bool?
    @Option(help: .setting("drain_time")) var drainTime: String?
    @Option(help: .setting("max_connections")) var maxConnections: String?
    @Option(help: .setting("max_connections_per_client")) var maxConnectionsPerClient: String?
    @Option(help: .setting("max_requests_per_client")) var maxRequestsPerClient: String?
    @OptionGroup var cache: CacheOptions
    @Option(help: .setting("max_size")) var maxSize: String?
    @Option(help: .setting("min_free")) var minFree: String?
    @Option(help: .setting("max_short_responses")) var maxShortResponses: String?
    @Option(help: .setting("max_buffered")) var maxBuffered: String?
    @Option(help: .setting("allow")) var allow: [String] = []
    @Option(help: .setting("mounts")) var mount: [String] = []
    @Flag(inversion: .prefixedNo, help: .setting("any_origin")) var anyOrigin: Bool?
    @Option(name: .customLong("cache"), help: .setting("cache"), completion: .list(["shared", "private"]))
    var cacheMode: String?
    @Option(name: .customLong("default-ttl"), help: .setting("default_ttl")) var defaultTTL: String?
    @Option(help: .setting("targeted_fields")) var targetedField: [String] = []
    @Flag(inversion: .prefixedNo, help: .setting("tunnel")) var tunnel: Bool?
    @Option(help: .setting("tunnel_ports")) var tunnelPort: [String] = []
    @Option(help: .setting("max_body")) var maxBody: String?
    @Flag(inversion: .prefixedNo, help: .setting("offline")) var offline: Bool?
    @Flag(inversion: .prefixedNo, help: .setting("play_pinned")) var playPinned: Bool?
    @Option(help: .setting("fill"), completion: .list(["read", "ahead", "end", "whole"])) var fill: String?
    @Option(help: .setting("ahead_segments")) var aheadSegments: String?
    @Flag(inversion: .prefixedNo, help: .setting("prefetch_next")) var prefetchNext: Bool?
    @Flag(inversion: .prefixedNo, help: .setting("ignore_reload")) var ignoreReload: Bool?
    @Option(help: .setting("max_downloads")) var maxDownloads: String?
    @Option(help: .setting("download_rate")) var downloadRate: String?
    @Option(help: .setting("schedule")) var schedule: [String] = []
    @Option(help: .setting("download_cap")) var downloadCap: [String] = []
    @Option(help: .setting("linger")) var linger: String?
    @Option(help: .setting("connect_timeout")) var connectTimeout: String?
    @Option(help: .setting("stall_timeout")) var stallTimeout: String?
    @Option(help: .setting("max_fetches")) var maxFetches: String?
    @Option(help: .setting("max_fetches_per_host")) var maxFetchesPerHost: String?
    @Option(help: .setting("web_origins")) var webOrigin: [String] = []
    @Option(help: .setting("secret_parameters")) var secretParameter: [String] = []
    @Option(help: .setting("parents")) var parent: [String] = []
    @Option(help: .setting("upstream_proxy")) var upstreamProxy: String?
    @Option(help: .setting("upstream_proxy_except")) var upstreamProxyExcept: [String] = []
    @Option(help: .setting("threads")) var threads: String?
    @Option(help: .setting("ca_file"), completion: .file()) var caFile: String?
    @Option(help: .setting("log_level"), completion: .logLevels) var logLevel: String?
    @Option(help: .setting("access_log"), completion: .file()) var accessLog: String?
    @Option(help: .setting("access_log_format"), completion: .list(["json", "combined"])) var accessLogFormat: String?

    // Names that other programs use. Without these, the parser would suggest the flag with the most similar name.
    @Option(help: .hidden) var port: String?
    @Option(help: .hidden) var host: String?

    func validate() throws {
        if let port { throw ValidationError("--port is not a flag of this command: write --listen 127.0.0.1:\(port)") }
        if let host { throw ValidationError("--host is not a flag of this command: write --listen \(host):7335") }
        try sources.validateFlags()
    }

    var sources: SettingSources {
        let single = [
            "listen": listen, "max_size": maxSize, "min_free": minFree,
            "max_short_responses": maxShortResponses, "max_buffered": maxBuffered,
            "any_origin": anyOrigin.map(String.init),
            "cache": cacheMode, "default_ttl": defaultTTL,
            "tunnel": tunnel.map(String.init),
            "max_body": maxBody,
            "offline": offline.map(String.init), "play_pinned": playPinned.map(String.init), "fill": fill,
            "ahead_segments": aheadSegments, "prefetch_next": prefetchNext.map(String.init),
            "ignore_reload": ignoreReload.map(String.init),
            "max_downloads": maxDownloads, "download_rate": downloadRate,
            "linger": linger, "connect_timeout": connectTimeout, "stall_timeout": stallTimeout,
            "max_fetches": maxFetches, "max_fetches_per_host": maxFetchesPerHost, "threads": threads, "ca_file": caFile,
            "log_level": logLevel,
            "access_log": accessLog, "access_log_format": accessLogFormat,
            "upstream_proxy": upstreamProxy,
            "proxy_protocol": proxyProtocol.map(String.init), "drain_time": drainTime,
            "max_connections": maxConnections, "max_connections_per_client": maxConnectionsPerClient,
            "max_requests_per_client": maxRequestsPerClient,
        ]
        var flags = single.compactMapValues { $0.map { [$0] } }
        let lists = [
            ("names", name), ("allow", allow), ("mounts", mount), ("tunnel_ports", tunnelPort),
            ("targeted_fields", targetedField),
            ("web_origins", webOrigin), ("trusted", trusted),
            ("secret_parameters", secretParameter), ("schedule", schedule), ("download_cap", downloadCap),
            ("parents", parent), ("upstream_proxy_except", upstreamProxyExcept),
        ]
        for (key, texts) in lists where !texts.isEmpty { flags[key] = texts }
        return cache.sources(flags)
    }
}

extension SettingSources {
    /// - Throws: `ValidationError` if a flag has a bad value, which counts as wrong usage.
    func validateFlags() throws {
        guard flagProblems.isEmpty else {
            throw ValidationError(flagProblems.map(\.description).joined(separator: "\n"))
        }
    }
}

private extension ArgumentHelp {
    static func setting(_ key: String) -> ArgumentHelp {
        guard let setting = Setting[key] else { preconditionFailure("there is no setting \(key)") }
        let words = [setting.summary, setting.isList ? "May be repeated." : nil, "(default: \(setting.standard))"]
        return ArgumentHelp(stringLiteral: words.compactMap { $0 }.joined(separator: " ")).named(setting.placeholder)
    }

    func named(_ valueName: String) -> ArgumentHelp {
        var help = self
        help.valueName = valueName
        return help
    }
}
