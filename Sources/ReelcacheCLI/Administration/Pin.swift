import Administration
import ArgumentParser
import DiskCache
import Reelcache

struct Pin: JSONCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keep resources from being evicted.",
        discussion: """
              reelcache pin https://example.org/film.mp4
              reelcache pin 'https://example.org/season-1/*'
            """)

    @OptionGroup var pinning: Pinning
    var json: Bool { pinning.json }

    func validate() throws { try pinning.validate(all: nil) }

    func run() throws { try pinning.run(isPinned: true) }
}

struct Unpin: JSONCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let resources be evicted again.",
        discussion: """
              reelcache unpin https://example.org/film.mp4
              reelcache unpin --all
            """)

    @OptionGroup var pinning: Pinning
    var json: Bool { pinning.json }
    @Flag(help: "Unpin everything that is pinned.")
    var all = false

    func validate() throws { try pinning.validate(all: all) }

    func run() throws { try pinning.run(isPinned: false, all: all) }
}

/// Options and work of both.
struct Pinning: ParsableArguments {
    @OptionGroup var selection: ResourceSelection
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    /// - Parameter all: whether everything is selected; nil for a command without `--all`.
    func validate(all: Bool?) throws {
        guard selection.wayCount + (all == true ? 1 : 0) == 1 else {
            throw ValidationError(
                "select resources: write one or more URLs, --filter TEXT\(all == nil ? " or --category NAME" : ", --category NAME or --all")"
            )
        }
    }

    func run(isPinned: Bool, all: Bool = false) throws {
        let configuration = try cache.configuration
        let batch = try configuration.withProxy { proxy in
            try Batch(selection.matches(proxy, all: all ? { $0.isPinned } : nil)) { url, _ in
                try proxy.setPinned(isPinned, url).resource
            }
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
