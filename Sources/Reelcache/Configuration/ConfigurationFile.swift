import Foundation

/// A configuration file as it was read: its text, not yet what it means.
package struct ConfigurationFile: Sendable {
    /// As it was named.
    package let path: String
    private let text: [UInt8]

    /// - Throws: where there is no such file, or no way to read it.
    package init(path: String) throws(UnreadableFile) {
        self.path = path
        text = try Self.contents(path)
    }

    init(path: String, text: [UInt8]) {
        self.path = path
        self.text = text
    }

    /// Far more than anybody writes: whoever names a film by mistake gets a word about it.
    private static let largestSize = 1 << 20

    private static func contents(_ path: String) throws(UnreadableFile) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw UnreadableFile(path: path, code: errno) }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count >= 0 else {
                if errno == EINTR { continue }
                throw UnreadableFile(path: path, code: errno)
            }
            guard count > 0 else { return text }
            text += buffer[..<count]
            guard text.count <= largestSize else { throw UnreadableFile(path: path, code: EFBIG) }
        }
    }

    /// All that is wrong with it, in the order of its lines.
    package func problems() -> [SettingProblem] {
        var settings = Settings()
        return apply(to: &settings)
    }

    /// Reads what it says into the settings.
    /// - Returns: all that is wrong with it, in the order of its lines.
    func apply(to settings: inout Settings) -> [SettingProblem] {
        let document: YAMLDocument
        do throws(YAMLDocument.SyntaxError) { document = try YAMLDocument(text) } catch {
            return [SettingProblem(origin: origin(error.place), key: nil, message: error.reason)]
        }
        var problems = document.repeated.map { entry, first in
            SettingProblem(origin: origin(entry.place), key: entry.key, message: "is there already, on line \(first.line); remove one of them")
        }
        for entry in document.entries {
            do throws(InvalidEntry) {
                let value = try value(of: entry)
                problems += value.setting.store(value, &settings)
            } catch {
                problems.append(SettingProblem(origin: origin(error.place), key: entry.key, message: error.reason))
            }
        }
        return problems.sorted { $0.order < $1.order }
    }

    private func origin(_ place: YAMLDocument.Place) -> SettingOrigin { .file(path, line: place.line, column: place.column) }

    private struct InvalidEntry: Error {
        let place: YAMLDocument.Place
        let reason: String
    }

    private func value(of entry: YAMLDocument.Entry) throws(InvalidEntry) -> SettingValue {
        guard let setting = Setting[entry.key] else { throw InvalidEntry(place: entry.place, reason: Self.unknownKey(entry.key)) }
        return SettingValue(setting, origin: origin(entry.place), items: try items(of: entry, setting))
    }

    private func items(of entry: YAMLDocument.Entry, _ setting: Setting) throws(InvalidEntry) -> [SettingValue.Item] {
        let form = "write \(setting.key): \(setting.isList ? "[\(setting.placeholder), ...]" : setting.placeholder)"
        switch (entry.value.content, setting.isList) {
        case (.nothing, _): throw InvalidEntry(place: entry.place, reason: "has no value; \(form), or remove the line")
        case (.text(let text), false): return [SettingValue.Item(text: text, origin: origin(entry.value.place))]
        case (.list(let values), true): return try values.map { value throws(InvalidEntry) in try item(value) }
        case (.text, true): throw InvalidEntry(place: entry.value.place, reason: "takes a list; \(form)")
        case (.list, false): throw InvalidEntry(place: entry.value.place, reason: "takes one value, and no list; \(form)")
        case (.mapping, _): throw InvalidEntry(place: entry.value.place, reason: "takes no keys of its own; \(form)")
        }
    }

    private func item(_ value: YAMLDocument.Value) throws(InvalidEntry) -> SettingValue.Item {
        guard case .text(let text) = value.content else {
            throw InvalidEntry(place: value.place, reason: "each entry of the list takes one value; write it as - VALUE")
        }
        return SettingValue.Item(text: text, origin: origin(value.place))
    }

    private static func unknownKey(_ key: String) -> String {
        let keys = Setting.all.map(\.key)
        let guess = EditDistance.nearest(to: key.lowercased().replacing("-", with: "_"), in: keys)
        return "is no setting; " + (guess.map { "did you mean \($0)?" } ?? "there are \(keys.joined(separator: ", "))")
    }
}

/// A file that cannot be read.
package struct UnreadableFile: Error, Sendable, CustomStringConvertible {
    package let path: String
    /// The system's error number.
    package let code: Int32

    var isAbsent: Bool { code == ENOENT || code == ENOTDIR }

    /// Why, in the system's words.
    package var reason: String { String(cString: strerror(code)) }

    package var description: String { "cannot read the configuration \(path): \(reason); name another with --config" }
}

private extension SettingProblem {
    /// By line and column.
    var order: (Int, Int) { if case .file(_, let line, let column) = origin { (line, column) } else { (0, 0) } }
}
