import CachePolicy
import HTTPModel

/// What is in a cache as a whole. Sizes are bytes.
package struct CacheReport: Codable, Sendable, Equatable {
    /// The cache directory.
    package var directory: String
    /// Allocated bytes on the disk, data and index together.
    package var size: Int64
    package var maxSize: Int64
    package var minFree: Int64
    /// How many resources are cached, wholly or in part; of these, how many are pinned. A presentation is one.
    package var resources: Int
    package var pinned: Int
}

/// A cached resource in a listing. Sizes are bytes, times are seconds since 1970.
package struct ResourceReport: Codable, Sendable, Equatable {
    package var url: String
    package var length: Int64
    /// How many of these bytes are cached.
    package var cached: Int64
    package var isComplete: Bool
    package var isPinned: Bool
    /// Requests answered from it, as far as the index knows.
    package var hits: Int64
    package var lastAccess: Int64
    package var storedAt: Int64
    /// `Content-Type`, where the origin named one.
    package var type: String?
    /// Of a presentation, under its first playlist: how many resources are parts of it, beside that. Sizes, hits and
    /// the last access are those of all of it, and `isComplete` is false: what there is of it beside what is cached,
    /// its playlists alone know. nil for anything else.
    package var parts: Int?
    /// The presentation that it is a part of.
    package var partOf: String?
    /// Of a presentation, where its playlists are cached: what there is of it. `isComplete` is then what that says.
    package var presentation: PresentationReport?
}

/// A part of a presentation. Sizes are bytes.
package struct PartReport: Sendable, Equatable {
    package let key: CacheKey
    package let length: Int64
    /// How many of these bytes are cached.
    package let cached: Int64
    package let isPinned: Bool
    /// Seconds since 1970.
    package let lastAccess: Int64

    package var isComplete: Bool { cached == length }

    init(_ part: CacheIndex.Part) {
        (key, length, cached, isPinned) = (part.key, part.length, part.cached, part.isPinned)
        lastAccess = part.lastAccess / 1_000_000
    }
}

/// A page of a listing.
package struct ResourceListing: Codable, Sendable, Equatable {
    package var resources: [ResourceReport]
    /// How many there are on all pages.
    package var total: Int
}

/// Which resources, in which order.
package struct ResourceQuery: Sendable, Equatable {
    package enum Order: String, Sendable, CaseIterable {
        /// Most cached bytes first.
        case size
        /// Last read first.
        case recent
        /// Most hits first.
        case hits
        /// By URL.
        case name
    }

    package var order = Order.recent
    /// A part of the URL, upper and lower case alike; nil for all.
    package var filter: String?
    /// What a filter does not see of URLs, as who asks is not shown it either; nil for nothing.
    package var mask: URLMask?
    /// Only what comes after this URL in the order of names; nil for all.
    package var after: String?
    /// nil for all.
    package var limit: Int?
    package var offset = 0

    package init() {}
}

extension ResourceListing {
    /// All resources that a query means, in pages, so that no answer grows with the cache. Each that is there from the
    /// first page to the last is among them where they are in the order of names: a page begins behind the last name.
    /// In another order they change their places while they are read: what moves to a later page is there twice, and
    /// kept once; what moves to an earlier one is missed.
    /// - Parameter page: gives the resources of one page, and how many there are in all.
    package static func all(
        _ query: ResourceQuery, limit: Int? = nil, pageSize: Int = 1000, page: (ResourceQuery) throws -> ResourceListing
    ) rethrows -> ResourceListing {
        var query = query
        query.limit = min(pageSize, limit ?? .max)
        var listing = try page(query)
        guard listing.resources.count < listing.total else { return listing }
        var (seen, last) = (Set(listing.resources.map(\.url)), listing.resources.last?.url)
        query.offset = listing.resources.count
        // An empty page is the end, and not the total: rows that are damaged are left out of pages, and the total
        // shrinks when what was listed goes.
        while let place = last, listing.resources.count < limit ?? .max {
            if query.order == .name { (query.after, query.offset) = (place, 0) }
            query.limit = min(pageSize, (limit ?? .max) - listing.resources.count)
            let page = try page(query)
            query.offset += page.resources.count
            let news = page.resources.filter { seen.insert($0.url).inserted }
            listing.resources += news
            listing.total = page.total
            // Who gives the same again, such as a proxy of another version, would do so for ever.
            if news.isEmpty, query.order == .name || query.offset >= page.total { break }
            last = page.resources.last?.url
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

/// All that is known of a cached resource.
package struct ResourceDetail: Codable, Sendable, Equatable {
    package var resource: ResourceReport
    /// Where its bytes came from, after redirects.
    package var finalURL: String
    package var etag: String?
    package var lastModified: String?
    /// The origin's `Cache-Control` and `Expires`, where it sent them.
    package var cacheControl: String?
    package var expires: String?
    /// When the origin made it, as it said.
    package var date: String?
    /// When it was stored, or last found to hold; seconds since 1970.
    package var validatedAt: Int64
    /// How old it was then, in seconds.
    package var initialAge: Int64
    package var chunkSize: Int64
    /// What is cached, in order.
    package var present: [ByteSpan]
    /// What is not, in order.
    package var missing: [ByteSpan]

    /// The fields that say for how long it is fresh.
    package var freshnessFields: HeaderFields {
        let named = [
            ("Cache-Control", cacheControl), ("Expires", expires), ("Last-Modified", lastModified), ("Date", date),
        ]
        return HeaderFields(named.compactMap { name, value in value.map { HeaderFields.Line(name: name, value: $0) } })
    }
}

extension ResourceDetail {
    /// Of a presentation whose first playlist is not cached.
    init(ofPartsAlone resource: ResourceReport) {
        self.init(
            resource: resource, finalURL: resource.url, etag: nil, lastModified: nil, cacheControl: nil, expires: nil,
            date: nil, validatedAt: 0, initialAge: 0, chunkSize: 0, present: [],
            missing: [])
    }
}

/// What of a resource is cached. Sizes are bytes.
package struct ResourceCoverage: Sendable, Equatable {
    package var length: Int64
    /// What is cached, in order.
    package var present: [Range<Int64>]
    package var isPinned: Bool
}

/// What a removal removed, or would remove.
package struct RemovalReport: Codable, Sendable, Equatable {
    package var resources: Int
    /// Bytes on the disk. What somebody is reading at this moment is given back when they have done.
    package var bytes: Int64
    /// Resources that were left because they are pinned.
    package var pinned: Int
    package var isDryRun: Bool
    /// Parts of presentations, which are not among the resources; nil for none.
    package var parts: Int?
}

/// What reading everything again has found. Without damage all three lists are empty and both counts of orphans 0.
package struct AuditReport: Codable, Sendable, Equatable {
    package struct Damage: Codable, Sendable, Equatable {
        package var url: String
        /// Chunks whose bytes are not what was written, and the bytes they cover.
        package var chunks: Int
        package var spans: [ByteSpan]
    }

    /// What was read.
    package var resources = 0
    package var chunks = 0
    package var bytes: Int64 = 0
    /// Resources with chunks that differ from their checksums or cannot be read.
    package var damaged: [Damage] = []
    /// URLs of resources whose file is gone.
    package var missingFiles: [String] = []
    /// URLs of resources of which the index has what cannot be.
    package var damagedRows: [String] = []
    /// Files that no resource has, and what they take on the disk.
    package var orphanedFiles = 0
    package var orphanedBytes: Int64 = 0
    /// Whether what was found was dropped.
    package var isRepaired = false
    /// Whether all was read: it was not ended before.
    package var isComplete = true

    package init() {}

    package var isSound: Bool { damaged.isEmpty && missingFiles.isEmpty && damagedRows.isEmpty && orphanedFiles == 0 }
}

/// How far an audit is.
package struct AuditProgress: Codable, Sendable, Equatable {
    package var resources: Int
    package var totalResources: Int
    package var bytes: Int64
    package var totalBytes: Int64
}
