import ArgumentParser
import Configuration
import ControlAPI
import Foundation
import Reelcache

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Create, edit or check the configuration file, or show the settings.",
        subcommands: [ConfigCheck.self, ConfigShow.self, ConfigInit.self, ConfigEdit.self])
}

struct ConfigCheck: JSONCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check a configuration file.",
        discussion: """
            Prints a line for each problem, beginning with FILE:LINE:COLUMN, and exits with 1 if there is one.

              reelcache config check
              reelcache config check ./reelcache.yaml
            """)

    @Argument(
        help: "The file to check. (default: the one that serve would read)",
        completion: .file(extensions: ["yaml", "yml"]))
    var file: String?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var cache: CacheOptions

    func run() throws {
        let report = ConfigurationReport(file, sources: cache.sources())
        print(json ? try ControlJSON.pretty(report) : report.lines.joined(separator: "\n"))
        if !report.ok { throw ExitCode(1) }
    }
}

struct ConfigShow: JSONCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show every setting and where it comes from.",
        discussion: """
            Takes the flags of serve, and shows the settings that serve would use with them.

              reelcache config show
              reelcache config show --max-size 100GB
            """)

    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var options: ServeOptions

    func run() throws {
        let rows = SettingReport.all(try options.cache.sources(options.flags).read())
        guard !json else { return print(try ControlJSON.pretty(rows)) }
        let width = (rows.map(\.key.count).max() ?? 0) + 2
        for row in rows { print("\(Self.column(row.key, width))\(Self.column(row.description, 36))\(row.origin)") }
    }

    private static func column(_ text: String, _ width: Int) -> String {
        text.padding(toLength: max(width, text.count + 2), withPad: " ", startingAt: 0)
    }
}
