import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache

struct Remove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Remove resources from the cache.",
        discussion: """
            Resources selected by URL, pattern, --filter or --category are removed, pinned or not; --all and --older-than \
            leave pinned ones. A resource that a player is reading is removed when the player has finished. A resource \
            with a download that has not ended stays: cancel the download first.

              reelcache rm https://example.org/film.mp4
              reelcache rm --older-than 30d --dry-run
            """)

    @OptionGroup var selection: ResourceSelection
    @Flag(help: "Remove everything that is not pinned.")
    var all = false
    @Option(
        help: ArgumentHelp(
            "Remove what was not read for this long, such as 30d, 12h or 2w, and is not pinned.", valueName: "time"))
    var olderThan: TimeSpan?
    @Flag(help: "Print what would be removed, and remove nothing.")
    var dryRun = false
    @Flag(help: "Do not ask. (default: on a terminal, ask before removing more than the URLs given)")
    var yes = false
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard selection.wayCount + [all, olderThan != nil].count(where: { $0 }) == 1 else {
            throw ValidationError(
                "select what to remove: write one or more URLs, --filter TEXT, --category NAME, --all or --older-than TIME"
            )
        }
    }

    func run() throws {
        guard selection.wayCount == 0 else { return try removeNamed() }
        let configuration = try cache.configuration
        if confirms {
            // The cache is not held open meanwhile: the answer may take long.
            let report = try configuration.withProxy { try $0.removeAll(olderThan: olderThan, isDryRun: true) }
            guard report.resources == 0 || Self.isConfirmed(report.resources, report.bytes, pinned: 0) else {
                throw CacheAccessError("nothing was removed")
            }
        }
        let report = try configuration.withProxy { try $0.removeAll(olderThan: olderThan, isDryRun: dryRun) }
        print(
            json
                ? try ControlJSON.pretty(report)
                : Self.text(
                    report.resources, report.bytes, parts: report.parts, pinned: report.pinned, isDryRun: dryRun))
    }

    private var confirms: Bool { !dryRun && !yes && Terminal.isOne(STDIN_FILENO) && Terminal.isOne(STDERR_FILENO) }

    private static func isConfirmed(_ resources: Int, _ bytes: Int64, pinned: Int) -> Bool {
        let remark = pinned > 0 ? " (\(pinned.grouped) of them pinned)" : ""
        Terminal.writeError("Remove \(resources.of("resource"))\(remark), \(bytes.size)? [y/N] ", end: "")
        return ["y", "yes"].contains(readLine()?.trimmingCharacters(in: .whitespaces).lowercased())
    }

    private func removeNamed() throws {
        let configuration = try cache.configuration
        var matches: [ResourceSelection.Match]?
        if selection.isBulk && confirms {
            let (found, tried, pinned) = try configuration.withProxy { proxy in
                let found = try selection.matches(proxy)
                var pinned = 0
                let batch = try Batch(found) { url, text in
                    if try proxy.resource(url).resource.isPinned { pinned += 1 }
                    return Removed(url: text, report: try proxy.remove(url, isDryRun: true))
                }
                return (found, Outcome(batch, isDryRun: true), pinned)
            }
            if tried.resources > 0, !Self.isConfirmed(tried.resources, tried.bytes, pinned: pinned) {
                throw CacheAccessError("nothing was removed")
            }
            matches = found
        }
        let batch = try configuration.withProxy { proxy in
            try Batch(matches ?? selection.matches(proxy)) { url, text in
                Removed(url: text, report: try proxy.remove(url, isDryRun: dryRun))
            }
        }
        let outcome = Outcome(batch, isDryRun: dryRun)
        if json {
            print(try secret.json(outcome, configuration))
        } else if !batch.done.isEmpty {
            print(Self.text(outcome.resources, outcome.bytes, parts: outcome.parts, pinned: 0, isDryRun: dryRun))
        }
        try batch.exitIfFailed(secret, configuration)
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
