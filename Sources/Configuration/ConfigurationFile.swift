import Foundation
import HTTPModel

/// The text of a configuration file, not yet interpreted.
package struct ConfigurationFile: Sendable {
    /// As the user named it.
    package let path: String
    private let text: [UInt8]

    /// - Throws: if the file does not exist or cannot be read.
    package init(path: String) throws(UnreadableFile) {
        self.path = path
        text = try Self.contents(path)
    }

    init(path: String, text: [UInt8]) {
        self.path = path
        self.text = text
    }

    /// Far more than anyone writes: naming a film by mistake is an error.
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

    /// All its problems, in the order of its lines.
    package func problems() -> [SettingProblem] {
        var settings = Settings()
        let problems = apply(to: &settings)
        return problems.isEmpty ? settings.problem(isComplete: false).map { [$0] } ?? [] : problems
    }

    /// Applies the file to the settings.
    /// - Returns: all its problems, in the order of its lines.
    func apply(to settings: inout Settings) -> [SettingProblem] {
        let document: YAMLDocument
        do throws(YAMLDocument.SyntaxError) { document = try YAMLDocument(text) } catch {
            return [SettingProblem(origin: origin(error.place), key: nil, message: error.reason)]
        }
        var problems: [SettingProblem] = []
        for member in members(of: document.root, below: nil, &problems) {
            if let setting = Setting[member.name] {
                problems += setting.store(member.value, origin: member.origin, in: &settings)
            } else {
                problems.append(
                    SettingProblem(origin: member.origin, key: member.name, message: Self.unknownKey(member.name)))
            }
        }
        return problems.sorted { $0.order < $1.order }
    }

    private func origin(_ place: YAMLDocument.Place) -> SettingOrigin {
        .file(path, line: place.line, column: place.column)
    }

    // MARK: From YAML

    /// Reports keys that occur more than once.
    private func members(of mapping: YAMLDocument.Mapping, below parent: String?, _ problems: inout [SettingProblem])
        -> [SettingValue.Member]
    {
        func key(_ entry: YAMLDocument.Entry) -> String { parent.map { "\($0).\(entry.key)" } ?? entry.key }
        for (entry, first) in mapping.repeated {
            let message = "is repeated, first on line \(first.line); remove one of them"
            problems.append(SettingProblem(origin: origin(entry.place), key: key(entry), message: message))
        }
        return mapping.entries.map { entry in
            SettingValue.Member(
                name: entry.key, origin: origin(entry.place),
                value: value(entry.value, key: key(entry), keyPlace: entry.place, &problems))
        }
    }

    /// - Parameter keyPlace: where a missing value is reported.
    private func value(
        _ value: YAMLDocument.Value, key: String, keyPlace: YAMLDocument.Place, _ problems: inout [SettingProblem]
    ) -> SettingValue {
        let content: SettingValue.Content =
            switch value.content {
            case .nothing: .nothing
            case .text(let text): .text(text)
            case .list(let values):
                .list(values.enumerated().map { self.value($1, key: "\(key)[\($0)]", keyPlace: $1.place, &problems) })
            case .mapping(let mapping): .mapping(members(of: mapping, below: key, &problems))
            }
        return SettingValue(
            key: key, origin: origin(value.content.isNothing ? keyPlace : value.place), content: content)
    }

    private static func unknownKey(_ key: String) -> String {
        let keys = Setting.all.map(\.key)
        let guess = EditDistance.nearest(to: key.lowercased().replacing("-", with: "_"), in: keys)
        return "is not a setting; "
            + (guess.map { "did you mean \($0)?" } ?? "the settings are \(keys.joined(separator: ", "))")
    }
}

/// A file that cannot be read.
package struct UnreadableFile: Error, Sendable, CustomStringConvertible {
    package let path: String
    /// The system's error number.
    package let code: Int32

    var isAbsent: Bool { code == ENOENT || code == ENOTDIR }

    /// The system's message.
    package var reason: String { String(errno: code) }

    package var description: String { "cannot read the configuration \(path): \(reason); name another with --config" }
}

private extension SettingProblem {
    /// By line and column.
    var order: (Int, Int) { if case .file(_, let line, let column) = origin { (line, column) } else { (0, 0) } }
}
