import CachePolicy
import HTTPModel

/// The content of a cache as a whole. Sizes are in bytes.
package struct CacheReport: Codable, Sendable, Equatable {
    /// The cache directory.
    package var directory: String
    /// Allocated bytes on the disk, data and index together.
    package var size: Int64
    package var maxSize: Int64
    package var minFree: Int64
    /// The number of resources that are cached, wholly or in part, and how many of them are pinned. A presentation
    /// counts as one.
    package var resources: Int
    package var pinned: Int
}

/// A page of a listing.
package struct ResourceListing: Codable, Sendable, Equatable {
    package var resources: [CachedResource]
    /// The number of resources on all pages.
    package var total: Int
}

/// Which resources to list, and in which order.
package struct ResourceQuery: Sendable, Equatable {
    package var order = CachedResource.Order.recent
    /// A part of the URL, ignoring case; nil for all.
    package var filter: String?
    /// The category that their downloads were ordered under; nil for all.
    package var category: String?
    /// Hides parts of URLs from the filter, because the caller does not see them either; nil for nothing.
    package var mask: URLMask?
    /// List only URLs after this one in the order of names; nil for all.
    package var after: String?
    /// nil for no limit.
    package var limit: Int?
    package var offset = 0

    package init() {}
}

extension ResourceListing {
    /// Reads all matching resources in pages, so that no single answer grows with the cache. In the order of names, a
    /// page begins after the last name, so every resource is included that is there from the first page to the last. In
    /// other orders, resources may move while they are read: one that moves to a later page is seen twice and kept
    /// once; one that moves to an earlier page is missed.
    /// - Parameter page: returns the resources of one page, and the total.
    package static func all(
        _ query: ResourceQuery, limit: Int? = nil, pageSize: Int = 1000, page: (ResourceQuery) throws -> ResourceListing
    ) rethrows -> ResourceListing {
        var query = query
        query.limit = min(pageSize, limit ?? .max)
        var listing = try page(query)
        guard listing.resources.count < listing.total else { return listing }
        var (seen, last) = (Set(listing.resources.map(\.urlText)), listing.resources.last?.urlText)
        query.offset = listing.resources.count
        // Only an empty page is the end: damaged rows are left out of pages, and the total shrinks when resources are
        // removed.
        while let place = last, listing.resources.count < limit ?? .max {
            if query.order == .name { (query.after, query.offset) = (place, 0) }
            query.limit = min(pageSize, (limit ?? .max) - listing.resources.count)
            let page = try page(query)
            query.offset += page.resources.count
            let news = page.resources.filter { seen.insert($0.urlText).inserted }
            listing.resources += news
            listing.total = page.total
            // Stop if the source repeats itself, such as a proxy of another version: it would do so for ever.
            if news.isEmpty, query.order == .name || query.offset >= page.total { break }
            last = page.resources.last?.urlText
        }
        return listing
    }
}

/// Bytes from `first` to `last`, both included, as in a `Range` field.
package struct ByteSpan: Codable, Sendable, Equatable {
    package var first: Int64
    package var last: Int64

    package init(_ range: Range<Int64>) {
        first = range.lowerBound
        last = range.upperBound - 1
    }

    package var count: Int64 { last -| first +| 1 }
}

/// Everything known about a cached resource.
package struct ResourceDetail: Codable, Sendable, Equatable {
    package var resource: CachedResource
    /// Where its bytes came from, after redirects.
    package var finalURL: String
    package var etag: String?
    package var lastModified: String?
    /// The origin's `Cache-Control` and `Expires`, if it sent them.
    package var cacheControl: String?
    package var expires: String?
    /// The fields in place of these two for certain caches, by name, if the origin sent any (RFC 9213).
    package var targetedCacheControl: [String: String]?
    /// The origin's `Date`.
    package var date: String?
    /// When it was stored or last validated; seconds since 1970.
    package var validatedAt: Int64
    /// Its age at that time, in seconds.
    package var initialAge: Int64
    package var chunkSize: Int64
    /// The cached ranges, in order.
    package var present: [ByteSpan]
    /// The missing ranges, in order.
    package var missing: [ByteSpan]

    /// The fields that determine how long it is fresh.
    package var freshnessFields: HeaderFields {
        let named = [
            ("Cache-Control", cacheControl), ("Expires", expires), ("Last-Modified", lastModified), ("Date", date),
        ]
        let targeted = (targetedCacheControl ?? [:]).map { ($0.key, Optional($0.value)) }
        return HeaderFields(
            (named + targeted).compactMap { name, value in value.map { HeaderFields.Line(name: name, value: $0) } })
    }
}

extension ResourceDetail {
    /// For a presentation whose first playlist is not cached.
    init(ofPartsAlone resource: CachedResource) {
        self.init(
            resource: resource, finalURL: resource.urlText, etag: nil, lastModified: nil, cacheControl: nil,
            expires: nil,
            targetedCacheControl: nil, date: nil, validatedAt: 0, initialAge: 0, chunkSize: 0, present: [],
            missing: [])
    }
}

/// Which resources a removal takes, of all that are cached.
package struct RemovalSelection: Sendable, Equatable {
    /// Only what was last read before this time, in seconds since 1970; nil for everything.
    package var before: Int64?
    /// Only what was played.
    package var isPlayed = false
    /// Whether pinned resources are taken as well.
    package var includesPinned = false

    package init(before: Int64? = nil) { self.before = before }
}

/// What a removal has removed, or would remove.
package struct RemovalReport: Codable, Sendable, Equatable {
    package var resources: Int
    /// Bytes on the disk. Those of resources that are being read are freed when that ends.
    package var bytes: Int64
    /// Resources that were kept because they are pinned.
    package var pinned: Int
    package var isDryRun: Bool
    /// Parts of presentations, which do not count as resources; nil for none.
    package var parts: Int?
}

/// The progress of a scrub.
package struct ScrubProgress: Codable, Sendable, Equatable {
    package var resources: Int
    package var totalResources: Int
    package var bytes: Int64
    package var totalBytes: Int64
}
