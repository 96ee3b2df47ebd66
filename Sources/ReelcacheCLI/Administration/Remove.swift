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
        discussion: "Those that are named go, pinned or not; --all and --older-than leave what is pinned. What a player is reading goes when it has done.")

    @Argument(help: "Media URLs, or those that a player opens for them.")
    var urls: [String] = []
    @Flag(help: "Remove everything that is not pinned. On a terminal it asks first.")
    var all = false
    @Option(help: ArgumentHelp("Remove what was not read for so long, such as 30d, 12h or 2w.", valueName: "time"))
    var olderThan: TimeSpan?
    @Flag(help: "Remove nothing, but say what would be.")
    var dryRun = false
    @Flag(help: "Do not ask.")
    var yes = false
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var cache: CacheOptions

    func validate() throws {
        guard [!urls.isEmpty, all, olderThan != nil].filter({ $0 }).count == 1 else {
            throw ValidationError("say what to remove: one or more URLs, --all or --older-than TIME")
        }
    }

    func run() throws {
        guard urls.isEmpty else { return try removeNamed() }
        let configuration = try cache.configuration
        if all && !dryRun && !yes && Terminal.isOne(STDIN_FILENO) && Terminal.isOne(STDERR_FILENO) {
            // Asked without the cache in hand: nobody knows how long the answer takes.
            let report = try configuration.withCache { try $0.removeAll(olderThan: nil, isDryRun: true) }
            guard Self.isConfirmed(report) else { throw CacheAccessError("nothing was removed") }
        }
        let report = try configuration.withCache { try $0.removeAll(olderThan: olderThan, isDryRun: dryRun) }
        print(json ? try ControlJSON.pretty(report) : Self.text(report.resources, report.bytes, pinned: report.pinned, isDryRun: dryRun))
    }

    private static func isConfirmed(_ report: RemovalReport) -> Bool {
        Terminal.writeError("Remove \(report.resources.of("resource")), \(report.bytes.size)? [y/N] ", end: "")
        return ["y", "yes"].contains(readLine()?.trimmingCharacters(in: .whitespaces).lowercased())
    }

    private func removeNamed() throws {
        let batch = try cache.configuration.withCache { access in
            try Batch(urls) { try Removed(url: $0, report: access.remove(access.url($0), isDryRun: dryRun)) }
        }
        let outcome = Outcome(batch, isDryRun: dryRun)
        if json {
            print(try ControlJSON.pretty(outcome))
        } else if !batch.done.isEmpty {
            print(Self.text(outcome.resources, outcome.bytes, pinned: 0, isDryRun: dryRun))
        }
        try batch.exitIfFailed()
    }

    private struct Removed: Encodable {
        let url: String
        let report: RemovalReport
    }

    /// As where all are removed, and what failed besides.
    private struct Outcome: Encodable {
        let resources: Int
        let bytes: Int64
        let pinned: Int
        let isDryRun: Bool
        let failed: [Batch<Removed>.Failed]

        init(_ batch: Batch<Removed>, isDryRun: Bool) {
            resources = batch.done.reduce(0) { $0 + $1.report.resources }
            bytes = batch.done.reduce(0) { $0 +| $1.report.bytes }
            // What is named goes, pinned or not.
            pinned = 0
            self.isDryRun = isDryRun
            failed = batch.failed
        }
    }

    private static func text(_ resources: Int, _ bytes: Int64, pinned: Int, isDryRun: Bool) -> String {
        let words = isDryRun ? ("would remove", "to be freed") : ("removed", "freed")
        return "\(words.0) \(resources.of("resource")); \(bytes.size) \(words.1)" + (pinned > 0 ? "; \(pinned.grouped) pinned left" : "")
    }
}

extension TimeSpan: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}
