/// One setting: a key of the file, a flag, and an environment variable.
package struct Setting: Sendable {
    /// Its name in the file, such as `max_size`.
    package let key: String
    /// Whether the default is a value that does not depend on the machine.
    private let hasFixedDefault: Bool
    /// What stands for the value in the manual, such as `size`.
    package let placeholder: String
    /// The default, in words or as it is written.
    package let standard: String
    /// Whether a flag and a variable take any number of values.
    package let isList: Bool
    /// Whether it can be set in the file only: there is neither a flag nor a variable.
    package let isFileOnly: Bool
    /// The one command that uses it and takes its flag; nil for the settings of the proxy, whose flags `serve` takes.
    package let command: String?
    private let flagName: String?

    /// Stores a value in the settings, or throws its problems and leaves them unchanged.
    private let store: @Sendable (SettingValue, inout Settings) throws(SettingProblems) -> Void
    /// As it is written; none for a missing value.
    private let texts: @Sendable (Settings) -> [String]
    private let summaryOfValue: (@Sendable (Settings) -> String?)?
    private let copy: @Sendable (Settings, inout Settings) -> Void
    private let areEqual: @Sendable (Settings, Settings) -> Bool
    /// Makes a running proxy use it; nil if it needs a restart.
    let reload: Reload?
    /// Whether it is part of the policy for requests. All of these change in one step: `reload` of one is `reload` of all.
    let isPolicy: Bool

    typealias Reload = @Sendable (RunningParts, Settings) throws -> Void

    private static let changePolicy: Reload = { try $0.cache.setPolicy(as: $1.proxy) }

    /// - Parameters:
    ///   - standard: the default in words; nil for the default as it is written.
    ///   - isPolicy: whether it is part of the policy for requests, which a running proxy can change.
    ///   - reload: makes a running proxy use it; nil if it needs a restart.
    init<Value>(
        _ key: String, _ kind: SettingKind<Value>, at path: WritableKeyPath<Settings, Value> & Sendable,
        standard: String? = nil, isPolicy: Bool = false, reload: Reload? = nil
    ) {
        self.init(key, kind.reader(), at: path, standard: standard, isPolicy: isPolicy, reload: reload)
    }

    /// One whose default is no value.
    init<Value>(
        optional kind: SettingKind<Value>, _ key: String, at path: WritableKeyPath<Settings, Value?> & Sendable,
        standard: String, isPolicy: Bool = false, reload: Reload? = nil
    ) {
        self.init(key, kind.optional, at: path, standard: standard, isPolicy: isPolicy, reload: reload)
    }

    /// One with any number of values.
    /// - Parameter flag: the name of the flag, if it differs from the key.
    init<Element>(
        listOf kind: SettingKind<Element>, _ key: String, flag: String? = nil,
        at path: WritableKeyPath<Settings, [Element]> & Sendable, standard: String? = nil, isPolicy: Bool = false,
        reload: Reload? = nil
    ) {
        var reader = kind.listReader
        reader.flagName = flag
        self.init(key, reader, at: path, standard: standard, isPolicy: isPolicy, reload: reload)
    }

    init<Value>(
        _ key: String, _ reader: SettingReader<Value>, at path: WritableKeyPath<Settings, Value> & Sendable,
        standard: String? = nil, command: String? = nil, isPolicy: Bool = false, reload: Reload? = nil
    ) {
        self.key = key
        self.command = command
        self.isPolicy = isPolicy
        self.reload = isPolicy ? Self.changePolicy : reload
        placeholder = reader.placeholder
        isList = reader.isList
        isFileOnly = reader.isFileOnly
        flagName = reader.flagName
        hasFixedDefault = standard == nil
        self.standard = standard ?? reader.texts(Settings()[keyPath: path]).joined(separator: ", ")
        texts = { reader.texts($0[keyPath: path]) }
        if let summary = reader.summary {
            summaryOfValue = { summary($0[keyPath: path]) }
        } else {
            summaryOfValue = nil
        }
        copy = { $1[keyPath: path] = $0[keyPath: path] }
        areEqual = { $0[keyPath: path] == $1[keyPath: path] }
        store = { value, settings throws(SettingProblems) in settings[keyPath: path] = try reader.read(value) }
    }

    /// Stores a value in the settings; a bad value leaves them unchanged.
    /// - Parameter origin: of the whole value.
    /// - Returns: all problems of the value.
    func store(_ value: SettingValue, origin: SettingOrigin, in settings: inout Settings) -> [SettingProblem] {
        do throws(SettingProblems) { try store(value, &settings) } catch { return error.all }
        settings.origins[key] = origin
        return []
    }

    // MARK: Words

    /// A sentence or two in the imperative.
    package var summary: String { SettingText.of(setting: key).summary }
    /// Paragraphs with code between backticks; lines that begin with two spaces are shown as they are. May be empty.
    package var details: String { SettingText.of(setting: key).details }
    /// A value other than the default, in YAML.
    package var example: String { SettingText.of(setting: key).example }

    /// The default in YAML; nil where it is none, or depends on the machine.
    package var defaultValue: String? {
        let texts = texts(Settings())
        guard hasFixedDefault, !texts.isEmpty else { return nil }
        return isList ? "[\(texts.joined(separator: ", "))]" : texts.joined()
    }

    /// Whether a running proxy takes up a new value on SIGHUP.
    package var isReloadable: Bool { reload != nil }

    // MARK: Names and values

    /// Such as `--max-size`.
    package var flag: String { "--" + (flagName ?? key.replacing("_", with: "-")) }
    /// Such as `REELCACHE_MAX_SIZE`.
    package var variable: String { "REELCACHE_" + key.uppercased() }

    /// Its value as it is written; one for each element of a list, none for a default that is not written.
    package func texts(in settings: Settings) -> [String] { texts(settings) }

    /// Its value as text.
    package func description(in settings: Settings) -> String {
        if let summary = summaryOfValue?(settings) { return summary }
        let texts = texts(settings)
        return texts.isEmpty ? "(\(standard))" : texts.joined(separator: ", ")
    }

    func isEqual(_ one: Settings, _ other: Settings) -> Bool { areEqual(one, other) }

    /// Copies the value and its origin.
    func copy(from source: Settings, to target: inout Settings) {
        copy(source, &target)
        target.origins[key] = source.origins[key]
    }
}
