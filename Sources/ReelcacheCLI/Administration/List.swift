import ArgumentParser
import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "ls", abstract: "List what is cached.")

    @Option(help: "size, recent, hits or name: most cached bytes, last read or most hits first, or by URL.")
    var sort = ResourceQuery.Order.recent
    @Option(help: ArgumentHelp("Only URLs that contain this; upper and lower case are alike.", valueName: "text"))
    var filter: String?
    @Option(help: ArgumentHelp("At most so many. (default: all)", valueName: "number"))
    var limit: Int?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    private static let pageSize = 1000

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit \(limit) shows nothing; choose 1 or more") }
    }

    func run() throws {
        let configuration = try cache.configuration
        let listing = try configuration.withCache { try list($0) }
        guard !json else { return print(try secret.shown(ControlJSON.pretty(listing), configuration)) }
        if !listing.resources.isEmpty { print(Self.header) }
        let now = Int64(time(nil))
        for resource in listing.resources { print(try secret.shown(Self.row(resource, now: now), configuration)) }
        let bytes = listing.resources.reduce(0) { $0 +| $1.cached }
        print("\(listing.resources.count.grouped) of \(listing.total.of("resource")); \(bytes.size)")
    }

    /// In pages, so that no answer grows with the cache. What moves to a later page while they are read is there twice, and kept once.
    private func list(_ access: any CacheAccess) throws -> ResourceListing {
        var query = ResourceQuery()
        (query.order, query.filter) = (sort, filter.flatMap { $0.isEmpty ? nil : $0 })
        query.limit = min(Self.pageSize, limit ?? .max)
        var listing = try access.resources(query)
        var seen = Set(listing.resources.map(\.url))
        query.offset = listing.resources.count
        while query.offset < listing.total, listing.resources.count < limit ?? .max {
            query.limit = min(Self.pageSize, (limit ?? .max) - listing.resources.count)
            let page = try access.resources(query)
            guard !page.resources.isEmpty else { break }
            query.offset += page.resources.count
            listing.resources += page.resources.filter { seen.insert($0.url).inserted }
            listing.total = page.total
        }
        return listing
    }

    // MARK: The table

    private static let header = row("SIZE", "OF", "HITS", "LAST READ", "FLAGS", "URL")

    private static func row(_ resource: ResourceReport, now: Int64) -> String {
        row(
            resource.cached.size, resource.isComplete ? "complete" : resource.length.size, resource.hits.grouped, TimeSpan.ago(resource.lastAccess, now: now),
            resource.isPinned ? "pinned" : "", resource.url.printable)
    }

    private static func row(_ size: String, _ of: String, _ hits: String, _ lastRead: String, _ flags: String, _ url: String) -> String {
        [size.padded(to: -9), of.padded(to: 9), hits.padded(to: -6), lastRead.padded(to: 11), flags.padded(to: 6), url].joined(separator: "  ")
    }
}

extension ResourceQuery.Order: ExpressibleByArgument {}

extension String {
    /// With spaces behind it, or before it where `width` is negative; longer ones stay as they are.
    func padded(to width: Int) -> String {
        let spaces = String(repeating: " ", count: max(0, abs(width) - count))  // no trap: a column's width
        return width < 0 ? spaces + self : self + spaces
    }
}
