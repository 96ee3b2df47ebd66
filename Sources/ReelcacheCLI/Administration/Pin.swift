import ArgumentParser
import ControlAPI
import DiskCache
import Reelcache

struct Pin: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Keep resources from being evicted.")

    @OptionGroup var pinning: Pinning

    func run() throws { try pinning.run(isPinned: true) }
}

struct Unpin: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Let resources be evicted again.")

    @OptionGroup var pinning: Pinning

    func run() throws { try pinning.run(isPinned: false) }
}

/// What both have in common.
struct Pinning: ParsableArguments {
    @Argument(help: "Media URLs, or those that a player opens for them.")
    var urls: [String]
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var cache: CacheOptions

    func run(isPinned: Bool) throws {
        let batch = try cache.configuration.withCache { access in
            try Batch(urls) { try access.setPinned(isPinned, access.url($0)).resource }
        }
        if json {
            print(try ControlJSON.pretty(batch))
        } else {
            for resource in batch.done { print("\(isPinned ? "pinned" : "unpinned") \(resource.url.printable), \(resource.cached.size)") }
        }
        try batch.exitIfFailed()
    }
}
