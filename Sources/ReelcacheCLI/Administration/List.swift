import Administration
import ArgumentParser
import CachePolicy
import DiskCache
import Foundation
import HTTPModel
import Reelcache

struct List: PrintingCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls", abstract: "List what is cached.",
        discussion: """
              reelcache ls --sort size --limit 10
              reelcache ls --filter example.org
            """)

    @Option(help: "Sort by cached bytes (size), by the last read (recent), by hits, or by URL (name).")
    var sort = CachedResource.Order.recent
    @Option(help: ArgumentHelp("List only URLs that contain this text; case does not matter.", valueName: "text"))
    var filter: String?
    @Option(
        help: ArgumentHelp("List only what was downloaded in this category.", valueName: "name"),
        completion: .known(.categories))
    var category: String?
    @Option(help: ArgumentHelp("Limit the list to this many resources. (default: all)", valueName: "number"))
    var limit: Int?
    @Flag(name: .shortAndLong, help: "On a terminal, list URLs in place of names.")
    var long = false
    @OptionGroup var printing: PrintingOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit \(limit) shows nothing: write 1 or more") }
        if category?.isEmpty == true { throw ValidationError("--category is empty: write its name") }
    }

    func run() throws {
        let configuration = try printing.cache.configuration
        let listing = try configuration.withProxy { proxy in
            var query = ResourceQuery()
            (query.order, query.filter) = (sort, filter.flatMap { $0.isEmpty ? nil : $0 })
            query.category = category
            return try ResourceListing.all(query, limit: limit, page: proxy.resources)
        }
        guard !printing.json else { return print(try printing.secret.json(listing, configuration)) }
        let now = Int64(time(nil))
        let table = TerminalTable(
            width: Terminal.width, isUnicode: Terminal.isUnicode, mask: try printing.secret.mask(configuration))
        // Elsewhere, whatever reads the list needs URLs.
        let isNamed = Terminal.width != nil && !long
        let rows = listing.resources.map { Self.row($0, now: now, isNamed: isNamed) }
        for line in table.lines(Self.columns, isNamed ? "NAME" : "URL", rows) { print(line) }
        let bytes = listing.resources.reduce(0) { $0 +| $1.cachedBytes }
        print("\(listing.resources.count.grouped) of \(listing.total.of("resource")); \(bytes.size)")
    }

    // MARK: The table

    private static let columns: [TerminalTable.Column] = [
        .init("SIZE", -9), .init("OF", 9, rank: 1), .init("HITS", -6, rank: 3), .init("LAST READ", 11, rank: 4),
        .init("FLAGS", 6, rank: 2),
    ]

    private static func row(_ resource: CachedResource, now: Int64, isNamed: Bool) -> TerminalTable.Row {
        let flags = PresentationText.flags(resource) + (resource.isPinned ? ["pinned"] : [])
        let cells = [
            resource.cachedBytes.size,
            resource.isComplete ? "complete" : PresentationText.share(resource) ?? resource.length.size,
            resource.hits.grouped,
            TimeSpan.ago(resource.lastAccess, now: now),
            flags.joined(separator: ", "),
        ]
        return isNamed
            ? TerminalTable.Row(cells, text: DisplayName(title: resource.title, url: resource.urlText).description)
            : TerminalTable.Row(cells, url: resource.urlText)
    }
}

extension CachedResource.Order: ExpressibleByArgument {}

extension String {
    /// With spaces behind it, or before it where `width` is negative; longer ones stay as they are.
    func padded(to width: Int) -> String {
        let spaces = String(repeating: " ", count: max(0, abs(width) - count)) // no trap: a column's width
        return width < 0 ? spaces + self : self + spaces
    }
}
