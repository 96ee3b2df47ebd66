import ArgumentParser
import Configuration
import Reelcache

/// Options of every command: the cache directory, and the configuration file that may name it.
struct CacheOptions: ParsableArguments {
    /// Of the setting that is an option of every command.
    static let key = "cache_dir"

    @Option(name: .customLong("cache-dir"), help: .setting(Self.key), completion: .setting(Self.key))
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
        sources.flags[Self.key] = directory.map { [$0] }
        sources.configFlag = file
        return sources
    }

    /// The cache directory.
    /// - Throws: `SettingsError`.
    var path: String {
        get throws { try sources().read().proxy.cacheDirectory }
    }
}

/// Options of `serve`: a flag for each setting of the proxy. They follow the table of settings, which is why the type
/// states by itself what the parser otherwise reads off its properties: the mirror has the definitions, and the decoder
/// the values.
struct ServeOptions: ParsableArguments, CustomReflectable {
    @OptionGroup var cache: CacheOptions
    // Names that other programs use. Without these, the parser would suggest the flag with the most similar name.
    @Option(help: .hidden) var port: String?
    @Option(help: .hidden) var host: String?
    /// As they were written, by the key of the setting.
    private(set) var flags: [String: [String]] = [:]

    private static let settings = Setting.all.filter { !$0.isFileOnly && $0.command == nil }

    init() {}

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: FlagKey.self)
        _cache = try values.decode(OptionGroup<CacheOptions>.self, forKey: FlagKey(stringValue: "cache"))
        _port = try values.decode(Option<String?>.self, forKey: FlagKey(stringValue: "port"))
        _host = try values.decode(Option<String?>.self, forKey: FlagKey(stringValue: "host"))
        for setting in Self.settings where setting.key != CacheOptions.key {
            flags[setting.key] = try setting.texts(in: values)
        }
    }

    var customMirror: Mirror {
        let settings = Self.settings.map { setting -> (String?, Any) in
            setting.key == CacheOptions.key ? ("cache", _cache) : (setting.key, setting.definition)
        }
        return Mirror(self, children: settings + [("port", _port), ("host", _host)])
    }

    func validate() throws {
        if let port { throw ValidationError("--port is not a flag of this command: write --listen 127.0.0.1:\(port)") }
        if let host { throw ValidationError("--host is not a flag of this command: write --listen \(host):7335") }
        try cache.sources(flags).validateFlags()
    }
}

/// The key of any setting.
private struct FlagKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

private extension Setting {
    /// What the parser has to know about its flag.
    var definition: Any {
        let name = NameSpecification.customLong(String(flag.dropFirst(2)))
        if isSwitch { return Flag<Bool?>(name: name, inversion: .prefixedNo, help: .setting(key)) }
        if isList {
            return Option<[String]>(wrappedValue: [], name: name, help: .setting(key), completion: .setting(key))
        }
        return Option<String?>(name: name, help: .setting(key), completion: .setting(key))
    }

    /// What the flag says; nil if it is not given.
    func texts(in values: KeyedDecodingContainer<FlagKey>) throws -> [String]? {
        let key = FlagKey(stringValue: key)
        if isSwitch { return try values.decode(Flag<Bool?>.self, forKey: key).wrappedValue.map { ["\($0)"] } }
        guard isList else { return try values.decode(Option<String?>.self, forKey: key).wrappedValue.map { [$0] } }
        let texts = try values.decode(Option<[String]>.self, forKey: key).wrappedValue
        return texts.isEmpty ? nil : texts
    }
}

private extension CompletionKind {
    static func setting(_ key: String) -> CompletionKind? {
        switch Setting[key]?.completion {
        case .nothing, nil: nil
        case .file: .file()
        case .directory: .directory
        case .words(let words): .list(words)
        }
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
