import DiskCache

extension Setting {
    /// All that can be set. Flags, environment, file, `config show` and SIGHUP go by this table.
    package static let all: [Setting] = [
        Setting(
            "listen", .listenAddress, at: \.proxy.listen,
            "Where to listen: HOST:PORT, [IPV6]:PORT, or :PORT for all addresses."),
        Setting(
            "cache_dir", .path, at: \.proxy.cacheDirectory, "The cache directory; made where it is missing.",
            standard: "$XDG_CACHE_HOME/reelcache, else ~/.cache/reelcache"),
        Setting(
            "max_size", .size(atLeast: CapacityLedger.smallestLimit), at: \.proxy.maxSize,
            "What the cache may take on the disk, such as 20GB or 500MiB; at least 16MB.",
            reload: { try $0.proxy.setLimits(maxSize: $1.proxy.maxSize) }),
        Setting(
            "min_free", .size(atLeast: 0), at: \.proxy.minFree, "What always stays free on the disk.",
            reload: { try $0.proxy.setLimits(minFree: $1.proxy.minFree) }),
        Setting(
            listOf: .privateOrigin, "allow", at: \.proxy.allow,
            "A private origin that may be fetched from: a host name, an address, or a network such as 192.168.1.0/24.", standard: "none",
            reload: { try $0.proxy.setAllow($1.proxy.allow) }),
        Setting(
            optional: .number(in: 1...256), "threads", at: \.proxy.threads, "Event loops, each with a thread; 1 to 256.",
            standard: "one for each core"),
        Setting(
            optional: .path, "ca_file", at: \.proxy.certificateFile, "A PEM file of certificates to trust instead of the system's.",
            standard: "the system's"),
        Setting(
            "log_level", .logLevel, at: \.logLevel, "trace, debug, info, notice, warning, error or critical.",
            reload: { $0.logLevel.current = $1.logLevel }),
    ]

    private static let byKey = Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0) })

    /// The one of that key.
    package static subscript(_ key: String) -> Setting? { byKey[key] }
}
