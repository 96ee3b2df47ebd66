/// How a setting is read from what a user wrote, and written again.
struct SettingReader<Value: Sendable & Equatable>: Sendable {
    /// Stands for the value in the manual.
    let placeholder: String
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

extension SettingKind {
    /// Reads one value.
    /// - Parameter form: how to write it; nil for the key and the placeholder.
    func reader(form: String? = nil) -> SettingReader<Value> {
        SettingReader(placeholder: placeholder) { [self] value throws(SettingProblems) in
            try read(value.text(form: form ?? "\(value.key): \(placeholder)"), at: value)
        } texts: { [write] in
            write($0).map { [$0] } ?? []
        }
    }

    /// Reads a list of any number of values.
    var listReader: SettingReader<[Value]> {
        SettingReader(placeholder: placeholder, isList: true) { [self] value throws(SettingProblems) in
            try SettingProblems.collect(value.list(form: "\(value.key): [\(placeholder), ...]")) {
                element throws(SettingProblems) in
                let element = element.named(value.key)
                return try read(element.element(), at: element)
            }
        } texts: { [write] in
            $0.compactMap(write)
        }
    }

    private func read(_ text: String, at value: SettingValue) throws(SettingProblems) -> Value {
        do throws(InvalidValue) { return try read(text, value.origin) } catch { throw value.problem(error.reason) }
    }
}

private extension SettingValue {
    /// Elements of a list have the name of the list; their place tells which one is meant.
    func named(_ key: String) -> SettingValue { SettingValue(key: key, origin: origin, content: content) }
}
