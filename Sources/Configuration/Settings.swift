import Logging
import Reelcache

/// The settings of `reelcache`, after all sources were read.
///
/// | term | meaning |
/// |---|---|
/// | setting | an entry of `Setting.all` |
/// | key | its name in the file, such as `max_size`; its flag is `--max-size`, its variable `REELCACHE_MAX_SIZE` |
/// | origin | where a value comes from: a flag, a variable, a line of the file, or the default |
package struct Settings: Sendable {
    package var proxy = ProxyConfiguration()
    package var logLevel = Logger.Level.notice
    /// The command that `reelcache play` runs, as words; empty for the first player that is installed.
    package var player: [String] = []
    /// By key. A setting without an origin has its default.
    var origins: [String: SettingOrigin] = [:]
    /// The file that was read; nil if there is none.
    package var file: String?

    package init() {}

    package func origin(of setting: Setting) -> SettingOrigin { origins[setting.key] ?? .standard }

    /// The first problem that no value has by itself: a list as a whole, or, if all sources have been read, settings
    /// that need each other.
    func problem(isComplete: Bool) -> SettingProblem? {
        do throws(ProxyError) {
            _ = try proxy.policy()
            if isComplete { try proxy.checkTogether() }
            return nil
        } catch {
            let text = error.explanation.description
            guard let setting = Setting[String(text.prefix { $0.isLetter || $0 == "_" })] else {
                return SettingProblem(origin: .standard, key: nil, message: text)
            }
            let message = text.dropFirst(setting.key.count).drop { $0 == ":" || $0 == " " }
            return SettingProblem(origin: origin(of: setting), key: setting.key, message: String(message))
        }
    }
}

/// Where a value comes from.
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

/// A problem with a setting, in one line that says what to write instead.
package struct SettingProblem: Sendable, Equatable, CustomStringConvertible {
    package let origin: SettingOrigin
    /// As it is written there; nil if the problem is not about a key.
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

/// Why the settings could not be read.
package enum SettingsError: Error, Sendable, CustomStringConvertible {
    /// The problems of all sources, at least one.
    case invalid([SettingProblem])
    case unreadable(UnreadableFile)

    /// The lines to print.
    package var lines: [String] {
        switch self {
        case .invalid(let problems): problems.map(\.description)
        case .unreadable(let file): [file.description]
        }
    }

    package var description: String { lines.joined(separator: "\n") }
}
