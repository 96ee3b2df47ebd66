/// The position of a download in a listing.
package struct DownloadPlace: Sendable, Comparable {
    /// Running downloads, then waiting, paused and ended ones.
    package var group: Int
    package var priority: Download.Priority
    package var order: Double

    package init(group: Int, priority: Download.Priority, order: Double) {
        (self.group, self.priority, self.order) = (group, priority, order)
    }

    package static func < (a: DownloadPlace, b: DownloadPlace) -> Bool {
        (a.group, a.priority, a.order) < (b.group, b.priority, b.order)
    }
}
