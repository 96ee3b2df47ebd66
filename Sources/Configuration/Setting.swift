/// One thing that can be set, in the file, and by a flag and an environment variable.
package struct Setting: Sendable {
    /// What it is called in the file, such as `max_size`.
    package let key: String
    /// What it means, in a sentence or two.
    package let summary: String
    /// What stands for the value in the manual, such as `size`.
    package let placeholder: String
    /// What holds where nobody says anything, in words or as it is written.
    package let standard: String
    /// Whether a flag and a variable give any number of values.
    package let isList: Bool
    /// Whether only the file can say it: there is neither a flag nor a variable.
    package let isFileOnly: Bool
    /// The one command that uses it and takes its flag; nil for the settings of the proxy, whose flags `serve` takes.
    package let command: String?
    private let flagName: String?

    /// Reads a value into the settings, or says what is wrong with it and leaves them as they are.
    private let store: @Sendable (SettingValue, inout Settings) throws(SettingProblems) -> Void
    /// As it is written; none for what has no value.
    private let texts: @Sendable (Settings) -> [String]
    private let summaryOfValue: (@Sendable (Settings) -> String?)?
    private let copy: @Sendable (Settings, inout Settings) -> Void
    private let areEqual: @Sendable (Settings, Settings) -> Bool
    /// Makes a running proxy work by it; nil for what needs a restart.
    let reload: Reload?
    /// Whether it is a part of what decides about requests: all of these become others in one step, and `reload` of one
    /// is that of all.
    let isPolicy: Bool

    typealias Reload = @Sendable (RunningParts, Settings) throws -> Void

    private static let changePolicy: Reload = { try $0.cache.setPolicy(as: $1.proxy) }

    /// - Parameters:
    ///   - standard: nil for the default as it is written.
    ///   - isPolicy: whether it is a part of what decides about requests; then a running proxy takes it up.
    ///   - reload: makes a running proxy work by it; nil for what needs a restart.
    init<Value>(
        _ key: String, _ kind: SettingKind<Value>, at path: WritableKeyPath<Settings, Value> & Sendable,
        _ summary: String, standard: String? = nil,
        isPolicy: Bool = false, reload: Reload? = nil
    ) {
        self.init(key, kind.reader(), at: path, summary, standard: standard, isPolicy: isPolicy, reload: reload)
    }

    /// One whose default is no value.
    init<Value>(
        optional kind: SettingKind<Value>, _ key: String, at path: WritableKeyPath<Settings, Value?> & Sendable,
        _ summary: String, standard: String,
        isPolicy: Bool = false, reload: Reload? = nil
    ) {
        self.init(key, kind.optional, at: path, summary, standard: standard, isPolicy: isPolicy, reload: reload)
    }

    /// One with any number of values.
    /// - Parameter flag: what the flag is called, where that is not the key.
    init<Element>(
        listOf kind: SettingKind<Element>, _ key: String, flag: String? = nil,
        at path: WritableKeyPath<Settings, [Element]> & Sendable, _ summary: String,
        standard: String? = nil, isPolicy: Bool = false, reload: Reload? = nil
    ) {
        var reader = kind.listReader
        reader.flagName = flag
        self.init(key, reader, at: path, summary, standard: standard, isPolicy: isPolicy, reload: reload)
    }

    init<Value>(
        _ key: String, _ reader: SettingReader<Value>, at path: WritableKeyPath<Settings, Value> & Sendable,
        _ summary: String, standard: String? = nil, command: String? = nil,
        isPolicy: Bool = false, reload: Reload? = nil
    ) {
        self.key = key
        self.command = command
        self.summary = summary
        self.isPolicy = isPolicy
        self.reload = isPolicy ? Self.changePolicy : reload
        placeholder = reader.placeholder
        isList = reader.isList
        isFileOnly = reader.isFileOnly
        flagName = reader.flagName
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

    /// Reads a value into the settings; what is wrong with it leaves them as they are.
    /// - Parameter origin: of the whole.
    /// - Returns: all that is wrong with it.
    func store(_ value: SettingValue, origin: SettingOrigin, in settings: inout Settings) -> [SettingProblem] {
        do throws(SettingProblems) { try store(value, &settings) } catch { return error.all }
        settings.origins[key] = origin
        return []
    }

    /// Such as `--max-size`.
    package var flag: String { "--" + (flagName ?? key.replacing("_", with: "-")) }
    /// Such as `REELCACHE_MAX_SIZE`.
    package var variable: String { "REELCACHE_" + key.uppercased() }

    /// Its value as it is written; one for each element of a list, none for a default that is not written.
    package func texts(in settings: Settings) -> [String] { texts(settings) }

    /// Its value for people.
    package func description(in settings: Settings) -> String {
        if let summary = summaryOfValue?(settings) { return summary }
        let texts = texts(settings)
        return texts.isEmpty ? "(\(standard))" : texts.joined(separator: ", ")
    }

    func isEqual(_ one: Settings, _ other: Settings) -> Bool { areEqual(one, other) }

    /// Takes the value and its origin over.
    func copy(from source: Settings, to target: inout Settings) {
        copy(source, &target)
        target.origins[key] = source.origins[key]
    }
}
