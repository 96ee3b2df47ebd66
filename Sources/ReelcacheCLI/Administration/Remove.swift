import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache

struct Remove: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Remove resources from the cache.",
        discussion: """
            Resources selected by URL, pattern, --filter or --category are removed, pinned or not; --all, --older-than \
            and --played leave pinned ones, unless --include-pinned. A resource that a player is reading is removed when \
            the player has finished. A pinned one with a download that has not ended stays: cancel the download first.

              reelcache rm https://example.org/film.mp4
              reelcache rm --older-than 30d --dry-run
              reelcache rm --played --include-pinned
            """)

    @OptionGroup var selection: ResourceSelection
    @Flag(help: "Remove everything that is not pinned.")
    var all = false
    @Option(
        help: ArgumentHelp(
            "Remove what was not read for this long, such as 30d, 12h or 2w, and is not pinned.", valueName: "time"))
    var olderThan: TimeSpan?
    @Flag(help: "Remove what was played: a player, not a download client, has read three quarters of it.")
    var played = false
    @Flag(help: "With --all, --older-than or --played, remove pinned resources, too.")
    var includePinned = false
    @Flag(help: "Print what would be removed, and remove nothing.")
    var dryRun = false
    @Flag(help: "Do not ask. (default: on a terminal, ask before removing more than the URLs given)")
    var yes = false
    @OptionGroup var printing: PrintingOptions

    func validate() throws {
        guard selection.wayCount + [all, olderThan != nil || played].count(where: { $0 }) == 1 else {
            throw ValidationError(
                "select what to remove: URLs, --filter TEXT, --category NAME, --all, --older-than TIME or --played"
            )
        }
        if includePinned, selection.wayCount > 0 {
            throw ValidationError("what is selected by name is removed, pinned or not: leave --include-pinned out")
        }
    }

    func run() throws {
        guard selection.wayCount == 0 else { return try removeNamed() }
        let configuration = try printing.cache.configuration
        let removal = RunningProxy.Removal(olderThan: olderThan, isPlayed: played, includesPinned: includePinned)
        if confirms || dryRun && !printing.json {
            // The cache is not held open meanwhile: the answer may take long.
            let (going, report) = try configuration.withProxy {
                (try removal.resources(in: $0), try $0.removeAll(removal, isDryRun: true))
            }
            try show(going, configuration)
            guard dryRun || report.resources == 0 || Self.isConfirmed(report.resources, report.bytes, pinned: 0) else {
                throw ControlError("nothing was removed")
            }
        }
        let report = try configuration.withProxy { try $0.removeAll(removal, isDryRun: dryRun) }
        print(
            printing.json
                ? try ControlJSON.pretty(report)
                : Self.text(
                    report.resources, report.bytes, parts: report.parts, pinned: report.pinned, isDryRun: dryRun))
    }

    /// The most resources that are named.
    private static let mostNamed = 20

    /// Names what goes: on standard output, or where it is asked.
    private func show(_ going: [CachedResource], _ configuration: ProxyConfiguration) throws {
        let table = TerminalTable(
            width: Terminal.width, isUnicode: Terminal.isUnicode, mask: try printing.secret.mask(configuration))
        let rows = going.prefix(Self.mostNamed).map {
            TerminalTable.Row(
                [$0.cachedBytes.size, $0.isPinned ? "pinned" : ""],
                text: DisplayName(title: $0.title, url: $0.urlText).description)
        }
        var lines = table.lines([.init("SIZE", -9), .init("FLAGS", 6, rank: 1)], "NAME", Array(rows))
        if going.count > rows.count { lines.append("and \((going.count - rows.count).grouped) more") }
        for line in lines { if dryRun { print(line) } else { Terminal.writeError(line) } }
    }

    private var confirms: Bool { !dryRun && !yes && Terminal.isOne(STDIN_FILENO) && Terminal.isOne(STDERR_FILENO) }

    private static func isConfirmed(_ resources: Int, _ bytes: Int64, pinned: Int) -> Bool {
        let remark = pinned > 0 ? " (\(pinned.grouped) of them pinned)" : ""
        Terminal.writeError("Remove \(resources.of("resource"))\(remark), \(bytes.size)? [y/N] ", end: "")
        return ["y", "yes"].contains(readLine()?.trimmingCharacters(in: .whitespaces).lowercased())
    }

    private func removeNamed() throws {
        let configuration = try printing.cache.configuration
        var matches: [ResourceSelection.Match]?
        let isConfirming = selection.isBulk && confirms
        if isConfirming || dryRun && !printing.json {
            let (found, tried, going) = try configuration.withProxy { proxy in
                let found = try selection.matches(proxy)
                var going: [CachedResource] = []
                let batch = try Batch(found) { url, text in
                    let removed = Removed(url: text, report: try proxy.remove(url, isDryRun: true))
                    going.append(try proxy.resource(url).resource)
                    return removed
                }
                return (found, Outcome(batch, isDryRun: true), going)
            }
            try show(going, configuration)
            if isConfirming, tried.resources > 0,
                !Self.isConfirmed(tried.resources, tried.bytes, pinned: going.count(where: \.isPinned))
            {
                throw ControlError("nothing was removed")
            }
            matches = found
        }
        let batch = try configuration.withProxy { proxy in
            try Batch(matches ?? selection.matches(proxy)) { url, text in
                Removed(url: text, report: try proxy.remove(url, isDryRun: dryRun))
            }
        }
        let outcome = Outcome(batch, isDryRun: dryRun)
        try printing.print(
            outcome, configuration,
            text: batch.done.isEmpty
                ? nil : Self.text(outcome.resources, outcome.bytes, parts: outcome.parts, pinned: 0, isDryRun: dryRun))
        try batch.exitIfFailed(printing.secret, configuration)
    }

    private struct Removed: Encodable {
        let url: String
        let report: RemovalReport
    }

    /// As if all were removed, and what failed besides.
    private struct Outcome: Encodable {
        let resources: Int
        let bytes: Int64
        let pinned: Int
        let isDryRun: Bool
        let parts: Int?
        let failed: [Batch<Removed>.Failed]

        init(_ batch: Batch<Removed>, isDryRun: Bool) {
            resources = batch.done.reduce(0) { $0 + $1.report.resources }
            bytes = batch.done.reduce(0) { $0 +| $1.report.bytes }
            // Resources that are named are removed, pinned or not.
            pinned = 0
            self.isDryRun = isDryRun
            let parts = batch.done.reduce(0) { $0 + ($1.report.parts ?? 0) }
            self.parts = parts > 0 ? parts : nil
            failed = batch.failed
        }
    }

    private static func text(_ resources: Int, _ bytes: Int64, parts: Int?, pinned: Int, isDryRun: Bool) -> String {
        let words = isDryRun ? ("would remove", "to be freed") : ("removed", "freed")
        let more = parts.map { " and \($0.of("part")) of presentations" } ?? ""
        return "\(words.0) \(resources.of("resource"))\(more); \(bytes.size) \(words.1)"
            + (pinned > 0 ? "; \(pinned.grouped) pinned left" : "")
    }
}

extension TimeSpan: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}
