import Administration
import ArgumentParser
import DiskCache
import Reelcache

struct Pin: PrintingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keep resources from being evicted.",
        discussion: """
              reelcache pin https://example.org/film.mp4
              reelcache pin 'https://example.org/season-1/*'
            """)

    @OptionGroup var selection: ResourceSelection
    @OptionGroup var printing: PrintingOptions

    func validate() throws { try selection.validate(all: nil) }

    func run() throws { try selection.setPinned(true, printing) }
}

struct Unpin: PrintingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let resources be evicted again.",
        discussion: """
              reelcache unpin https://example.org/film.mp4
              reelcache unpin --all
            """)

    @OptionGroup var selection: ResourceSelection
    @OptionGroup var printing: PrintingOptions
    @Flag(help: "Unpin everything that is pinned.")
    var all = false

    func validate() throws { try selection.validate(all: all) }

    func run() throws { try selection.setPinned(false, all: all, printing) }
}

private extension ResourceSelection {
    /// - Parameter all: whether everything is selected; nil for a command without `--all`.
    func validate(all: Bool?) throws {
        guard wayCount + (all == true ? 1 : 0) == 1 else {
            throw ValidationError(
                "select resources: write one or more URLs, --filter TEXT\(all == nil ? " or --category NAME" : ", --category NAME or --all")"
            )
        }
    }

    func setPinned(_ isPinned: Bool, all: Bool = false, _ printing: PrintingOptions) throws {
        let configuration = try printing.cache.configuration
        let batch = try configuration.withProxy { proxy in
            try Batch(matches(proxy, allPinned: all)) { url, _ in
                try proxy.setPinned(isPinned, url).resource
            }
        }
        try batch.end(printing, configuration) { resource in
            let url = Terminal.shown(try printing.secret.shown(resource.urlText, configuration))
            let parts = resource.parts.map { " and its \($0.of("part"))" } ?? ""
            return "\(isPinned ? "pinned" : "unpinned") \(url)\(parts), \(resource.cachedBytes.size)"
        }
    }
}
