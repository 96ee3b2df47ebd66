/// How a setting is read from what a user wrote, and written again.
struct SettingReader<Value: Sendable & Equatable>: Sendable {
    /// Stands for the value in the manual.
    let placeholder: String
    var completion = SettingCompletion.nothing
    /// Whether flags and variables take any number of texts.
    var isList = false
    /// Whether it can be set in the file only.
    var isFileOnly = false
    /// The name of the flag, if it differs from the key: a flag that may be repeated is singular.
    var flagName: String?
    let read: @Sendable (SettingValue) throws(SettingProblems) -> Value
    /// As it is written; none for a missing value.
    let texts: @Sendable (Value) -> [String]
    /// The value as text, if that is not how it is written.
    var summary: (@Sendable (Value) -> String?)?
}

extension SettingReader {
    /// Reads one value.
    /// - Parameter form: how to write it; nil for the placeholder.
    static func one(_ kind: SettingKind<Value>, form: String? = nil) -> Self {
        SettingReader(placeholder: kind.placeholder, completion: kind.completion) { value throws(SettingProblems) in
            try kind.read(value.text(form: "\(value.name): \(form ?? kind.placeholder)"), at: value)
        } texts: {
            kind.write($0).map { [$0] } ?? []
        }
    }

    /// Reads one value of a setting whose default is none.
    static func optional<Wrapped>(_ kind: SettingKind<Wrapped>) -> Self where Value == Wrapped? {
        let reader = SettingReader<Wrapped>.one(kind)
        return SettingReader(placeholder: kind.placeholder, completion: kind.completion) {
            value throws(SettingProblems) in
            try reader.read(value)
        } texts: {
            $0.map(reader.texts) ?? []
        }
    }

    /// Reads a list of any number of values.
    /// - Parameter flag: the name of the flag, if it differs from the key.
    static func list<Element>(of kind: SettingKind<Element>, flag: String? = nil) -> Self where Value == [Element] {
        SettingReader(
            placeholder: kind.placeholder, completion: kind.completion, isList: true, flagName: flag
        ) { value throws(SettingProblems) in
            try SettingProblems.collect(value.list(form: "\(value.key): [\(kind.placeholder), ...]")) {
                element throws(SettingProblems) in
                // Elements have the name of the list; their place tells which one is meant.
                let element = SettingValue(key: value.key, origin: element.origin, content: element.content)
                return try kind.read(element.element(), at: element)
            }
        } texts: {
            $0.compactMap(kind.write)
        }
    }
}

private extension SettingKind {
    func read(_ text: String, at value: SettingValue) throws(SettingProblems) -> Value {
        do throws(InvalidValue) { return try read(text, value.origin) } catch { throw value.problem(error.reason) }
    }
}
