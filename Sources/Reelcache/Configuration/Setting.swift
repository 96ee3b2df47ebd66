/// One thing that can be set, by a flag, by an environment variable and in the file.
package struct Setting: Sendable {
    /// What it is called in the file, such as `max_size`.
    package let key: String
    /// What it means, in a sentence or two.
    package let summary: String
    /// What stands for the value in the manual, such as `size`.
    package let placeholder: String
    /// What holds where nobody says anything, in words or as it is written.
    package let standard: String
    /// Whether it has any number of values.
    package let isList: Bool

    /// Reads a value into the settings, or says what is wrong with it and leaves them as they are.
    let store: @Sendable (SettingValue, inout Settings) -> [SettingProblem]
    /// As it is written; none for what has no value.
    private let texts: @Sendable (Settings) -> [String]
    private let copy: @Sendable (Settings, inout Settings) -> Void
    private let areEqual: @Sendable (Settings, Settings) -> Bool
    /// Makes a running proxy work by it; nil for what needs a restart.
    let reload: Reload?

    typealias Reload = @Sendable (RunningParts, Settings) throws -> Void

    /// - Parameters:
    ///   - standard: nil for the default as it is written.
    ///   - reload: makes a running proxy work by it; nil for what needs a restart.
    init<Value>(
        _ key: String, _ kind: SettingKind<Value>, at path: WritableKeyPath<Settings, Value> & Sendable, _ summary: String, standard: String? = nil,
        reload: Reload? = nil
    ) {
        self.init(
            key: key, summary: summary, placeholder: kind.placeholder, isList: false, path: path, standard: standard, reload: reload,
            texts: { kind.write($0).map { [$0] } ?? [] }
        ) { value, settings in
            guard let item = value.items.first else { return [] }
            do throws(InvalidValue) {
                settings[keyPath: path] = try kind.read(item.text, item.origin)
                return []
            } catch {
                return [SettingProblem(origin: item.origin, key: key, message: error.reason)]
            }
        }
    }

    /// One whose default is no value.
    init<Value>(
        optional kind: SettingKind<Value>, _ key: String, at path: WritableKeyPath<Settings, Value?> & Sendable, _ summary: String, standard: String,
        reload: Reload? = nil
    ) {
        self.init(key, kind.optional, at: path, summary, standard: standard, reload: reload)
    }

    /// One with any number of values.
    init<Element>(
        listOf kind: SettingKind<Element>, _ key: String, at path: WritableKeyPath<Settings, [Element]> & Sendable, _ summary: String,
        standard: String? = nil, reload: Reload? = nil
    ) {
        self.init(
            key: key, summary: summary, placeholder: kind.placeholder, isList: true, path: path, standard: standard, reload: reload,
            texts: { $0.compactMap(kind.write) }
        ) { value, settings in
            var (elements, problems): ([Element], [SettingProblem]) = ([], [])
            for item in value.items {
                do throws(InvalidValue) { elements.append(try kind.read(item.text, item.origin)) } catch {
                    problems.append(SettingProblem(origin: item.origin, key: key, message: error.reason))
                }
            }
            if problems.isEmpty { settings[keyPath: path] = elements }
            return problems
        }
    }

    private init<Value: Equatable & Sendable>(
        key: String, summary: String, placeholder: String, isList: Bool, path: WritableKeyPath<Settings, Value> & Sendable, standard: String?,
        reload: Reload?, texts: @escaping @Sendable (Value) -> [String], read: @escaping @Sendable (SettingValue, inout Settings) -> [SettingProblem]
    ) {
        self.key = key
        self.summary = summary
        self.placeholder = placeholder
        self.isList = isList
        self.reload = reload
        self.standard = standard ?? texts(Settings()[keyPath: path]).joined(separator: ", ")
        self.texts = { texts($0[keyPath: path]) }
        copy = { $1[keyPath: path] = $0[keyPath: path] }
        areEqual = { $0[keyPath: path] == $1[keyPath: path] }
        store = { value, settings in
            let problems = read(value, &settings)
            if problems.isEmpty { settings.origins[key] = value.origin }
            return problems
        }
    }

    /// Such as `--max-size`.
    package var flag: String { "--" + key.replacing("_", with: "-") }
    /// Such as `REELCACHE_MAX_SIZE`.
    package var variable: String { "REELCACHE_" + key.uppercased() }

    /// Its value as it is written; one for each element of a list, none for a default that is not written.
    package func texts(in settings: Settings) -> [String] { texts(settings) }

    /// Its value for people.
    package func description(in settings: Settings) -> String {
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

/// A value as somebody wrote it.
struct SettingValue: Sendable {
    struct Item: Sendable {
        let text: String
        let origin: SettingOrigin
    }

    let setting: Setting
    /// Of the whole.
    let origin: SettingOrigin
    /// One, or for a list any number.
    let items: [Item]

    init(_ setting: Setting, origin: SettingOrigin, items: [Item]) {
        self.setting = setting
        self.origin = origin
        self.items = items
    }

    init(_ setting: Setting, origin: SettingOrigin, texts: [String]) {
        self.init(setting, origin: origin, items: texts.map { Item(text: $0, origin: origin) })
    }
}
