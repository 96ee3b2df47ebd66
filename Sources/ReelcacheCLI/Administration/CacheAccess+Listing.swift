import DiskCache
import Reelcache

extension CacheAccess {
    /// All resources that a query means, in pages, so that no answer grows with the cache. What moves to a later page while they are read is
    /// there twice, and kept once.
    func allResources(_ query: ResourceQuery, limit: Int? = nil) throws -> ResourceListing {
        let pageSize = 1000
        var query = query
        query.limit = min(pageSize, limit ?? .max)
        var listing = try resources(query)
        var seen = Set(listing.resources.map(\.url))
        query.offset = listing.resources.count
        while query.offset < listing.total, listing.resources.count < limit ?? .max {
            query.limit = min(pageSize, (limit ?? .max) - listing.resources.count)
            let page = try resources(query)
            guard !page.resources.isEmpty else { break }
            query.offset += page.resources.count
            listing.resources += page.resources.filter { seen.insert($0.url).inserted }
            listing.total = page.total
        }
        return listing
    }
}
