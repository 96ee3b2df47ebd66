/// One setting: a key of the file, a flag, and an environment variable.
package struct Setting: Sendable {
    /// Its name in the file, such as `max_size`.
    package let key: String
    /// A sentence or two in the imperative, without markup: `--help` shows them as they are.
    package let summary: String
    /// Paragraphs with code between backticks; lines that begin with two spaces are shown as they are. May be empty.
    package let details: String
    /// A value other than the default, in YAML.
    package let example: String
    /// What stands for the value in the manual, such as `size`.
    package let placeholder: String
    package let completion: SettingCompletion
    /// The default, in words or as it is written.
    package let standard: String
    /// The default in YAML; nil where it is none, or depends on the machine.
    package let defaultValue: String?
    /// Whether a flag and a variable take any number of values.
    package let isList: Bool
    /// Whether it is true or false, so that its flag has no value.
    package let isSwitch: Bool
    /// Whether it can be set in the file only: there is neither a flag nor a variable.
    package let isFileOnly: Bool
    /// The one command that uses it and takes its flag; nil for the settings of the proxy, whose flags `serve` takes.
    package let command: String?
    /// Whether a running proxy keeps its value until it is started again, rather than take up a new one on SIGHUP.
    package let needsRestart: Bool
    /// Such as `--max-size`.
    package let flag: String

    /// Stores a value in the settings, or throws its problems and leaves them unchanged.
    private let store: @Sendable (SettingValue, inout Settings) throws(SettingProblems) -> Void
    private let texts: @Sendable (Settings) -> [String]
    private let summaryOfValue: @Sendable (Settings) -> String?
    private let copy: @Sendable (Settings, inout Settings) -> Void
    let isEqual: @Sendable (Settings, Settings) -> Bool

    /// - Parameter standard: the default in words; nil for the default as it is written.
    init<Value>(
        _ key: String, _ reader: SettingReader<Value>, at path: WritableKeyPath<Settings, Value> & Sendable,
        standard: String? = nil, command: String? = nil, needsRestart: Bool = false, _ summary: String,
        _ details: String = "", example: String
    ) {
        (self.key, self.summary, self.details, self.example) = (key, summary, details, example)
        (self.command, self.needsRestart) = (command, needsRestart)
        (placeholder, completion, isList) = (reader.placeholder, reader.completion, reader.isList)
        (isSwitch, isFileOnly) = (Value.self == Bool.self || Value.self == Bool?.self, reader.isFileOnly)
        flag = "--" + (reader.flagName ?? key.replacing("_", with: "-"))
        let texts = reader.texts(Settings()[keyPath: path])
        self.standard = standard ?? texts.joined(separator: ", ")
        defaultValue =
            standard != nil || texts.isEmpty ? nil : isList ? "[\(texts.joined(separator: ", "))]" : texts.joined()
        self.texts = { reader.texts($0[keyPath: path]) }
        summaryOfValue = { reader.summary?($0[keyPath: path]) }
        copy = { $1[keyPath: path] = $0[keyPath: path] }
        isEqual = { $0[keyPath: path] == $1[keyPath: path] }
        store = { value, settings throws(SettingProblems) in settings[keyPath: path] = try reader.read(value) }
    }

    /// Such as `REELCACHE_MAX_SIZE`.
    package var variable: String { "REELCACHE_" + key.uppercased() }

    /// Stores a value in the settings; a bad value leaves them unchanged.
    /// - Parameter origin: of the whole value.
    /// - Returns: all problems of the value.
    func store(_ value: SettingValue, origin: SettingOrigin, in settings: inout Settings) -> [SettingProblem] {
        do throws(SettingProblems) { try store(value, &settings) } catch { return error.all }
        settings.origins[key] = origin
        return []
    }

    /// Its value as it is written; one for each element of a list, none for a default that is not written.
    package func texts(in settings: Settings) -> [String] { texts(settings) }

    /// Its value as text.
    package func description(in settings: Settings) -> String {
        if let summary = summaryOfValue(settings) { return summary }
        let texts = texts(settings)
        return texts.isEmpty ? "(\(standard))" : texts.joined(separator: ", ")
    }

    /// Copies the value and its origin.
    func copy(from source: Settings, to target: inout Settings) {
        copy(source, &target)
        target.origins[key] = source.origins[key]
    }
}
