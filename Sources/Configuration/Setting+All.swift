import DiskCache
import Reelcache

extension Setting {
    /// All settings. Flags, environment, file, `config show`, SIGHUP and the manual follow this table; what they mean is
    /// in `SettingText`.
    package static let all: [Setting] = [
        Setting("listen", .listenAddress, at: \.proxy.listen),
        Setting(listOf: .hostName, "names", flag: "name", at: \.proxy.names, standard: "none"),
        Setting(listOf: .trusted, "trusted", flag: "trusted", at: \.proxy.trusted, standard: "none"),
        Setting("proxy_protocol", .bool, at: \.proxy.expectsProxyHeader),
        Setting("drain_time", .time(in: ProxyConfiguration.drainTimeRange), at: \.proxy.drainTime, reload: { _, _ in }),
        Setting(
            optional: .number(in: ProxyConfiguration.connectionsRange), "max_connections", at: \.proxy.maxConnections,
            standard: "as many as there are files for", reload: { try $0.cache.setClientLimits(as: $1.proxy) }),
        Setting(
            optional: .number(in: ProxyConfiguration.connectionsRange), "max_connections_per_client",
            at: \.proxy.maxConnectionsPerClient, standard: "any number",
            reload: { try $0.cache.setClientLimits(as: $1.proxy) }),
        Setting(
            optional: .requestRate, "max_requests_per_client", at: \.proxy.maxRequestsPerClient, standard: "any number",
            reload: { try $0.cache.setClientLimits(as: $1.proxy) }),
        Setting(
            "cache_dir", .path, at: \.proxy.cacheDirectory,
            standard: "$XDG_CACHE_HOME/reelcache, else ~/.cache/reelcache"),
        Setting(
            "max_size", .size(atLeast: CapacityLedger.smallestLimit), at: \.proxy.maxSize,
            reload: { try $0.cache.setLimits(maxSize: $1.proxy.maxSize) }),
        Setting(
            "min_free", .size(atLeast: 0), at: \.proxy.minFree,
            reload: { try $0.cache.setLimits(minFree: $1.proxy.minFree) }),
        Setting(
            "max_short_responses", .size(atLeast: 0), at: \.proxy.maxShortResponses,
            reload: { try $0.cache.setMaxShortResponses($1.proxy.maxShortResponses) }),
        Setting(
            optional: .size(atLeast: ProxyConfiguration.leastBuffered), "max_buffered", at: \.proxy.maxBuffered,
            standard: "a sixteenth of the memory, 16MB to 48MB",
            reload: { try $0.cache.setMaxBuffered($1.proxy.maxBuffered) }),
        Setting(
            listOf: .privateOrigin, "allow", at: \.proxy.allow, standard: "none",
            reload: { try $0.cache.setAllow($1.proxy.allow) }),
        Setting("mounts", .mounts, at: \.proxy.configuredMounts, standard: "none", isPolicy: true),
        Setting("any_origin", .bool, at: \.proxy.servesAnyOrigin, isPolicy: true),
        Setting(
            optional: .cacheMode, "cache", at: \.proxy.cache,
            standard: "shared if only mounts are served, otherwise private", isPolicy: true),
        Setting(
            optional: .time(in: ProxyConfiguration.defaultTTLRange), "default_ttl", at: \.proxy.defaultTTL,
            standard: "10 min in a private cache, 0 s in a shared one", isPolicy: true),
        Setting(
            listOf: .targetedField, "targeted_fields", flag: "targeted-field", at: \.proxy.targetedFields,
            isPolicy: true),
        Setting("tunnel", .bool, at: \.proxy.tunnels, isPolicy: true),
        Setting(
            listOf: .number(in: 1...65535), "tunnel_ports", flag: "tunnel-port", at: \.proxy.tunnelPorts, isPolicy: true
        ),
        Setting(
            optional: .size(atLeast: 0), "max_body", at: \.proxy.largestMountBody, standard: "any size", isPolicy: true),
        Setting("offline", .bool, at: \.proxy.isOffline, isPolicy: true),
        Setting("play_pinned", .bool, at: \.proxy.playsPinned, isPolicy: true),
        Setting("fill", .fill, at: \.proxy.fill, isPolicy: true),
        Setting(
            "ahead_segments", .number(in: ProxyConfiguration.aheadSegmentsRange), at: \.proxy.aheadSegments,
            isPolicy: true),
        Setting("prefetch_next", .bool, at: \.proxy.prefetchesNext, isPolicy: true),
        Setting(
            optional: .bool, "ignore_reload", at: \.proxy.ignoresReload,
            standard: "only segments that a playlist names", isPolicy: true),
        Setting(
            "max_downloads", .number(in: ProxyConfiguration.maxDownloadsRange), at: \.proxy.maxDownloads,
            reload: { try $0.cache.setMaxDownloads($1.proxy.maxDownloads) }),
        Setting(
            "download_rate", .rate, at: \.proxy.downloadRate,
            reload: { try $0.cache.setDownloadRate($1.proxy.downloadRate) }),
        Setting(
            "schedule", .schedule, at: \.proxy.downloadSchedule, standard: "downloads run at any time",
            reload: { try $0.cache.setDownloadSchedule($1.proxy.downloadSchedule) }),
        Setting(
            "download_cap", .caps, at: \.proxy.downloadCaps, standard: "any number of bytes",
            reload: { try $0.cache.setDownloadCaps($1.proxy.downloadCaps) }),
        Setting("linger", .time(in: ProxyConfiguration.lingerRange), at: \.proxy.linger),
        Setting("connect_timeout", .time(in: ProxyConfiguration.connectTimeoutRange), at: \.proxy.connectTimeout),
        Setting("stall_timeout", .time(in: ProxyConfiguration.stallTimeoutRange), at: \.proxy.stallTimeout),
        Setting("max_fetches", .number(in: ProxyConfiguration.fetchesRange), at: \.proxy.maxFetches),
        Setting("max_fetches_per_host", .number(in: ProxyConfiguration.fetchesRange), at: \.proxy.maxFetchesPerHost),
        Setting(
            listOf: .webOrigin, "web_origins", flag: "web-origin", at: \.proxy.webOrigins, standard: "none",
            isPolicy: true),
        Setting(
            listOf: .parameterPattern, "secret_parameters", flag: "secret-parameter", at: \.proxy.secretParameters,
            standard: "none besides the built-in ones", isPolicy: true),
        Setting(optional: .number(in: 1...256), "threads", at: \.proxy.threads, standard: "one for each core"),
        Setting(optional: .path, "ca_file", at: \.proxy.certificateFile, standard: "the system's"),
        Setting("log_level", .logLevel, at: \.logLevel, reload: { $0.logLevel.current = $1.logLevel }),
        Setting(
            optional: .output, "access_log", at: \.proxy.accessLog, standard: "no log",
            reload: { try $0.cache.setAccessLog($1.proxy.accessLog) }),
        Setting(
            "access_log_format", .accessLogFormat, at: \.proxy.accessLogFormat,
            reload: { try $0.cache.setAccessLogFormat($1.proxy.accessLogFormat) }),
        Setting(
            "player", .player, at: \.player, standard: "mpv, vlc or ffplay, the first that is installed",
            command: "play"),
        Setting(listOf: .parent, "parents", flag: "parent", at: \.proxy.parents, standard: "none", isPolicy: true),
        Setting(
            optional: .outgoingProxy, "upstream_proxy", at: \.proxy.upstreamProxy, standard: "none",
            reload: Self.setUpstreamProxy),
        Setting(
            listOf: .proxyException, "upstream_proxy_except", at: \.proxy.upstreamProxyExceptions, standard: "none",
            reload: Self.setUpstreamProxy),
        Setting("resolvers", .resolvers, at: \.proxy.resolvers, standard: "none", isPolicy: true),
        Setting("rules", .rules, at: \.proxy.rules, standard: "none", isPolicy: true),
    ]

    private static let setUpstreamProxy: Reload = {
        try $0.cache.setUpstreamProxy($1.proxy.upstreamProxy, except: $1.proxy.upstreamProxyExceptions)
    }

    private static let byKey = Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0) })

    /// The setting of that key.
    package static subscript(_ key: String) -> Setting? { byKey[key] }
}
