import DiskCache

/// A subscription as a glance at the database shows it; see `CachedName`.
package struct SubscribedName: Sendable, Equatable {
    package let url: String
    package let title: String?

    package init(_ report: FeedSubscription) { (url, title) = (report.urlText, report.title) }

    private init?(_ row: StoredRow) {
        guard let url = try? row.text("url") else { return nil }
        (self.url, title) = (url, try? row.text("title"))
    }

    /// In the order of subscribing.
    package static func all(in directory: String, limit: Int) throws -> [SubscribedName] {
        try StoredRow.glance(
            of: StoreConfiguration.feeds(in: directory), "SELECT url, title FROM subscription ORDER BY id LIMIT ?1",
            [limit]
        ).compactMap(SubscribedName.init)
    }
}
