import Foundation
import Reelcache

/// Where settings come from. The first wins: flags, environment, file, defaults. A list replaces another; it does not
/// add to it.
package struct SettingSources: Sendable {
    /// The values of flags, by key.
    package var flags: [String: [String]] = [:]
    /// `--config`.
    package var configFlag: String?
    package var environment: [String: String]
    /// The directory of the system's configuration.
    package var systemDirectory = "/etc"

    package init(environment: [String: String] = ProcessInfo.processInfo.environment) {
        self.environment = environment
    }

    /// The variable that names the file.
    package static let configVariable = "REELCACHE_CONFIG"

    /// Reads all sources.
    /// - Throws: the problems of all of them, including those of values that another source overrides.
    package func read() throws(SettingsError) -> Settings {
        var settings = Settings()
        let file: ConfigurationFile?
        do throws(UnreadableFile) { file = try chosenFile() } catch { throw .unreadable(error) }
        settings.file = file?.path
        let problems =
            (file?.apply(to: &settings) ?? [])
            + (environmentValues + flagValues).flatMap { $0.store($1, origin: $1.origin, in: &settings) }
        guard problems.isEmpty else { throw .invalid(problems) }
        if let problem = settings.problem(isComplete: true) { throw .invalid([problem]) }
        return settings
    }

    /// The problems of the flags alone.
    package var flagProblems: [SettingProblem] {
        var settings = Settings()
        return flagValues.flatMap { $0.store($1, origin: $1.origin, in: &settings) }
    }

    private var flagValues: [(Setting, SettingValue)] {
        Setting.all.compactMap { setting in
            flags[setting.key].map { Self.value(of: setting, .flag(setting.flag), $0) }
        }
    }

    /// An empty variable counts as unset.
    private var environmentValues: [(Setting, SettingValue)] {
        Setting.all.compactMap { setting in
            variable(setting.variable).map {
                Self.value(of: setting, .variable(setting.variable), setting.isList ? Self.words($0) : [$0])
            }
        }
    }

    private static func value(of setting: Setting, _ origin: SettingOrigin, _ texts: [String]) -> (
        Setting, SettingValue
    ) {
        (setting, SettingValue(key: setting.key, isList: setting.isList, origin: origin, texts: texts))
    }

    private func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }

    private static func words(_ text: String) -> [String] {
        text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    // MARK: The file

    /// The file to read; nil if none is named and none exists.
    /// - Parameter path: of a file that comes before all others.
    /// - Throws: if a file that is named, or one that exists, cannot be read.
    package func chosenFile(_ path: String? = nil) throws(UnreadableFile) -> ConfigurationFile? {
        if let named = path ?? configFlag ?? variable(Self.configVariable) { return try ConfigurationFile(path: named) }
        for path in standardPaths {
            do throws(UnreadableFile) { return try ConfigurationFile(path: path) } catch {
                guard error.isAbsent else { throw error }
            }
        }
        return nil
    }

    /// The file that a user's commands read: the one that is named, otherwise that of the user, there or not.
    package var ownFile: String { configFlag ?? variable(Self.configVariable) ?? standardPaths[0] }

    /// Whether a flag or a variable names the file.
    package var namesFile: Bool { configFlag ?? variable(Self.configVariable) != nil }

    /// Where the file may be: only where it is named, otherwise at one of the standard paths.
    var files: [String] { namesFile ? [ownFile] : standardPaths }

    /// Where to look for a file if none is named. Only the first one that exists is read.
    package var standardPaths: [String] {
        [HomeDirectory.directory("XDG_CONFIG_HOME", orElse: ".config", environment), systemDirectory].map {
            $0 + "/reelcache/reelcache.yaml"
        }
    }
}
