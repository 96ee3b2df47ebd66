import Logging
import Reelcache

/// How `reelcache` works, after all that has a say in it was read.
///
/// | term | meaning |
/// |---|---|
/// | setting | one thing that can be set: an entry of `Setting.all` |
/// | key | its name in the file, such as `max_size`; its flag is `--max-size`, its variable `REELCACHE_MAX_SIZE` |
/// | origin | who said it: a flag, a variable, a line of the file, or nobody |
package struct Settings: Sendable {
    package var proxy = ProxyConfiguration()
    package var logLevel = Logger.Level.notice
    /// The words of the command that `reelcache play` runs; none for the first player that is installed.
    package var player: [String] = []
    /// By key. What is not in here has its default.
    var origins: [String: SettingOrigin] = [:]
    /// The file that was read; nil where there is none.
    package var file: String?

    package init() {}

    package func origin(of setting: Setting) -> SettingOrigin { origins[setting.key] ?? .standard }
}

/// Where a value was said.
package enum SettingOrigin: Sendable, Equatable, CustomStringConvertible {
    case standard
    /// Line and column count from 1.
    case file(String, line: Int, column: Int)
    /// By the name of the environment variable.
    case variable(String)
    /// By the name of the flag, such as `--max-size`.
    case flag(String)

    package var description: String {
        switch self {
        case .standard: "default"
        case .file(let path, let line, _): "\(path):\(line)"
        case .variable(let name), .flag(let name): name
        }
    }

    var isFile: Bool { if case .file = self { true } else { false } }
}

/// One thing that is wrong with what was said, in one line that says what to write instead.
package struct SettingProblem: Sendable, Equatable, CustomStringConvertible {
    package let origin: SettingOrigin
    /// As it is written there; nil where the problem is none of a key.
    package let key: String?
    package let message: String

    init(origin: SettingOrigin, key: String?, message: String) {
        self.origin = origin
        self.key = key?.printable
        self.message = message.printable
    }

    package var description: String {
        switch origin {
        case .file(let path, let line, let column):
            "\(path):\(line):\(column): \(key.map { "\($0): " } ?? "")\(message)"
        case .variable(let name), .flag(let name): "\(name): \(message)"
        case .standard: message
        }
    }
}

/// Why there are no settings.
package enum SettingsError: Error, Sendable, CustomStringConvertible {
    /// All that is wrong with what was read, at least one.
    case invalid([SettingProblem])
    case unreadable(UnreadableFile)

    /// One for each line to print.
    package var lines: [String] {
        switch self {
        case .invalid(let problems): problems.map(\.description)
        case .unreadable(let file): [file.description]
        }
    }

    package var description: String { lines.joined(separator: "\n") }
}
