import Administration
import DiskCache

extension CacheAccess {
    /// All resources that a query means, in pages.
    func allResources(_ query: ResourceQuery, limit: Int? = nil) throws -> ResourceListing {
        try ResourceListing.all(query, limit: limit, page: resources)
    }
}
