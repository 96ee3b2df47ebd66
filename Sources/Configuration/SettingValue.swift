/// A value as a user wrote it, with the origin of each of its parts.
struct SettingValue: Sendable {
    indirect enum Content: Sendable {
        case nothing
        case text(String)
        case list([SettingValue])
        case mapping([Member])
    }

    /// Of several with the same key, the first.
    struct Member: Sendable {
        let name: String
        let origin: SettingOrigin
        let value: SettingValue

        /// A problem, reported at the place of its name.
        func problem(_ message: String) -> SettingProblems {
            SettingProblems(SettingProblem(origin: origin, key: value.key, message: message))
        }
    }

    /// Its name in reports: `max_size`, `rules[2].ttl`.
    let key: String
    let origin: SettingOrigin
    let content: Content

    init(key: String, origin: SettingOrigin, content: Content) {
        self.key = key
        self.origin = origin
        self.content = content
    }

    /// Of a flag or a variable.
    init(key: String, isList: Bool, origin: SettingOrigin, texts: [String]) {
        let values = texts.map { SettingValue(key: key, origin: origin, content: .text($0)) }
        self.init(key: key, origin: origin, content: isList ? .list(values) : values.first?.content ?? .nothing)
    }

    /// The last part of the key.
    var name: Substring { key.split(separator: ".").last ?? "" }

    func problem(_ message: String) -> SettingProblems {
        SettingProblems(SettingProblem(origin: origin, key: key, message: message))
    }

    // MARK: What it has to be

    /// - Parameter form: how to write it.
    func text(form: String) throws(SettingProblems) -> String {
        switch content {
        case .text(let text): return text
        case .nothing: throw missing(form)
        case .list: throw problem("takes one value, not a list; write \(form)")
        case .mapping: throw problem("takes no keys of its own; write \(form)")
        }
    }

    func list(form: String) throws(SettingProblems) -> [SettingValue] {
        switch content {
        case .list(let values): return values
        case .nothing: throw missing(form)
        case .text: throw problem("takes a list; write \(form)")
        case .mapping: throw problem("takes no keys of its own; write \(form)")
        }
    }

    func members(form: String) throws(SettingProblems) -> [Member] {
        switch content {
        case .mapping(let members): return members
        case .nothing: throw missing(form)
        case .text, .list: throw problem("takes keys of its own; write \(form)")
        }
    }

    /// As an element of a list of texts.
    func element() throws(SettingProblems) -> String {
        guard case .text(let text) = content else {
            throw problem("each entry of the list takes one value; write it as - VALUE")
        }
        return text
    }

    private func missing(_ form: String) -> SettingProblems {
        problem("has no value; write \(form), or remove the line")
    }
}

/// The problems of a value, at least one.
struct SettingProblems: Error {
    private(set) var all: [SettingProblem] = []

    init(_ problem: SettingProblem) { all = [problem] }

    private init() {}

    /// Reads several values, so that the problems of each are reported.
    static func collect<Source, Value>(_ sources: [Source], _ read: (Source) throws(SettingProblems) -> Value)
        throws(SettingProblems) -> [Value]
    {
        var (values, problems): ([Value], SettingProblems) = ([], SettingProblems())
        for source in sources {
            do throws(SettingProblems) { values.append(try read(source)) } catch { problems.all += error.all }
        }
        guard problems.all.isEmpty else { throw problems }
        return values
    }
}
