import ArgumentParser
import Foundation
import Reelcache

/// Writes what belongs to a release and is made from the program's own tables. Hidden: packagers and the scripts of the
/// repository use it.
struct Generate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write the manual pages, the completions and the sample configuration.",
        shouldDisplay: false,
        subcommands: [GenerateMan.self, GenerateConfig.self, GenerateCompletions.self])

    /// Makes the directories that are missing.
    static func write(_ text: String, to path: String, in directory: String) throws {
        let url = URL(fileURLWithPath: directory).appendingPathComponent(path)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
    }
}

/// A command about all commands.
protocol HelpReader: ParsableCommand {
    /// - Parameter help: all commands, as the parser describes them (`--experimental-dump-help`).
    func run(help: String) throws
}

struct GenerateMan: HelpReader {
    static let configuration = CommandConfiguration(
        commandName: "man", abstract: "Write the manual pages to DIR/man1 and DIR/man5.")

    @Argument(help: "The directory, such as /usr/share/man.")
    var directory: String

    func run(help: String) throws {
        let edition = Edition(version: Proxy.version, date: Self.date)
        for page in try Manual(ToolInfo(json: help)).pages(edition) {
            try Generate.write(page.text, to: page.path, in: directory)
        }
    }

    /// A package that is built again from the same sources has the same pages:
    /// https://reproducible-builds.org/specs/source-date-epoch/
    private static var date: String {
        let epoch = ProcessInfo.processInfo.environment["SOURCE_DATE_EPOCH"].flatMap(TimeInterval.init)
        let format = DateFormatter()
        (format.locale, format.timeZone) = (Locale(identifier: "en_US_POSIX"), TimeZone(identifier: "UTC"))
        format.dateFormat = "MMMM d, yyyy"
        return format.string(from: epoch.map { Date(timeIntervalSince1970: $0) } ?? Date())
    }
}

struct GenerateCompletions: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completions", abstract: "Write reelcache.bash, _reelcache and reelcache.fish to DIR.")

    @Argument(help: "The directory.")
    var directory: String

    func run() throws {
        for (shell, file) in [
            (CompletionShell.bash, "reelcache.bash"), (.zsh, "_reelcache"), (.fish, "reelcache.fish"),
        ] {
            try Generate.write(CompletionScript.text(for: shell), to: file, in: directory)
        }
    }
}

struct GenerateConfig: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Print the sample configuration, config/reelcache.yaml.")

    func run() { print(Manual.sampleFile, terminator: "") }
}
