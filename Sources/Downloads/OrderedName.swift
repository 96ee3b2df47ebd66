import DiskCache
import GRDB

/// A download as a glance at the database shows it; see `CachedName`.
package struct OrderedName: Sendable, Equatable {
    package let id: Int64
    package let url: String
    package let state: Download.State
    package let category: String?

    package init(_ report: Download) {
        (id, url, state, category) = (report.id, report.urlText, report.state, report.category)
    }

    private init?(_ row: StoredRow) {
        guard let id = try? row.integer("id"), let url = try? row.text("url"),
            let state = (try? row.text("state")).flatMap(Download.State.init)
        else { return nil }
        (self.id, self.url, self.state, category) = (id, url, state, try? row.text("category"))
    }

    /// The newest first.
    package static func all(in directory: String, limit: Int) throws -> [OrderedName] {
        try StoredRow.glance(
            of: StoreConfiguration.downloads(in: directory),
            "SELECT id, url, state, category FROM download ORDER BY id DESC LIMIT ?1", [limit]
        ).compactMap(OrderedName.init)
    }
}
