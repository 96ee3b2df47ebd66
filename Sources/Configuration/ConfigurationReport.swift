import CachePolicy

/// The result of checking a configuration file.
package struct ConfigurationReport: Sendable, Encodable {
    package struct Problem: Sendable, Encodable {
        package let line: Int?
        package let column: Int?
        package let key: String?
        package let message: String
    }

    /// Nil if no file is named and none exists.
    package let file: String?
    package let ok: Bool
    package let problems: [Problem]
    /// The report as text.
    package let lines: [String]

    private enum CodingKeys: CodingKey { case file, ok, problems }

    /// Checks a file.
    /// - Parameter path: nil for the one that `serve` would read.
    package init(_ path: String?, sources: SettingSources) {
        do throws(UnreadableFile) {
            guard let file = try sources.chosenFile(path) else {
                self.init(
                    file: nil,
                    lines: [
                        "there is no configuration file; looked for \(sources.standardPaths.joined(separator: " and "))"
                    ])
                return
            }
            let problems = file.problems()
            self.init(
                file: file.path, problems: problems.map(Problem.init),
                lines: problems.isEmpty ? ["\(file.path): ok"] : problems.map(\.description))
        } catch {
            let message = "cannot be read: \(error.reason)"
            self.init(
                file: error.path, problems: [Problem(line: nil, column: nil, key: nil, message: message)],
                lines: ["\(error.path): \(message)"])
        }
    }

    private init(file: String?, problems: [Problem] = [], lines: [String]) {
        self.file = file
        self.problems = problems
        self.lines = lines
        ok = problems.isEmpty
    }
}

private extension ConfigurationReport.Problem {
    init(_ problem: SettingProblem) {
        let place: (line: Int, column: Int)? =
            if case .file(_, let line, let column) = problem.origin { (line, column) } else { nil }
        self.init(line: place?.line, column: place?.column, key: problem.key, message: problem.message)
    }
}

/// The value of one setting, and where it comes from.
package struct SettingReport: Sendable, Encodable {
    package let key: String
    /// As they are written, without the secrets of URLs; none if nothing is set.
    package let values: [String]
    /// `default`, a file and its line, a variable or a flag.
    package let origin: String
    /// The value as text.
    package let description: String

    private enum CodingKeys: CodingKey { case key, values, origin }

    /// Reports of all settings, in the order of the table.
    package static func all(_ settings: Settings) -> [SettingReport] {
        let mask = (try? settings.proxy.mask) ?? .standard
        return Setting.all.map {
            SettingReport(
                key: $0.key, values: $0.texts(in: settings).map(mask.masked), origin: "\(settings.origin(of: $0))",
                description: $0.description(in: settings))
        }
    }
}
