import Administration
import ArgumentParser
import DiskCache
import Reelcache

struct Pin: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Keep resources from being evicted.")

    @OptionGroup var pinning: Pinning

    func validate() throws { try pinning.validate(all: nil) }

    func run() throws { try pinning.run(isPinned: true) }
}

struct Unpin: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Let resources be evicted again.")

    @OptionGroup var pinning: Pinning
    @Flag(help: "Unpin all that is pinned.")
    var all = false

    func validate() throws { try pinning.validate(all: all) }

    func run() throws { try pinning.run(isPinned: false, all: all) }
}

/// What both have in common.
struct Pinning: ParsableArguments {
    @OptionGroup var selection: ResourceSelection
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    /// - Parameter all: whether all are meant; nil where that cannot be said.
    func validate(all: Bool?) throws {
        guard selection.wayCount + (all == true ? 1 : 0) == 1 else {
            throw ValidationError(
                "say which: one or more URLs, --filter TEXT\(all == nil ? " or --category NAME" : ", --category NAME or --all")"
            )
        }
    }

    func run(isPinned: Bool, all: Bool = false) throws {
        let configuration = try cache.configuration
        let matches = try selection.matches(configuration, all: all ? { $0.isPinned } : nil)
        let batch = try configuration.withCache { access in
            try Batch(matches) { url, _ in try access.setPinned(isPinned, url).resource }
        }
        if json {
            print(try secret.json(batch, configuration))
        } else {
            for resource in batch.done {
                let url = Terminal.shown(try secret.shown(resource.url, configuration))
                let parts = resource.parts.map { " and its \($0.of("part"))" } ?? ""
                print("\(isPinned ? "pinned" : "unpinned") \(url)\(parts), \(resource.cached.size)")
            }
        }
        try batch.exitIfFailed(secret, configuration)
    }
}
