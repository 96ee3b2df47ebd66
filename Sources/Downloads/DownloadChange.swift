/// A change of existing downloads. If several members are set, all are applied, in this order.
package struct DownloadChange: Sendable, Equatable {
    package enum Action: String, Codable, Sendable, CaseIterable { case pause, resume, cancel, retry }

    package var action: Action?
    package var priority: Download.Priority?
    /// The position among the waiting downloads of its priority; 0 is the first. For one download only.
    package var position: Int?
    /// Bytes per second; 0 for no limit.
    package var limitRate: Int64?

    package init(
        action: Action? = nil, priority: Download.Priority? = nil, position: Int? = nil, limitRate: Int64? = nil
    ) {
        (self.action, self.priority, self.position, self.limitRate) = (action, priority, position, limitRate)
    }
}

/// Which downloads to change.
package enum DownloadSelection: Sendable, Equatable {
    /// All that the change applies to. Ended ones are included only in a retry, and then only failed ones.
    case all
    /// All of these, or none.
    case ids([Int64])
    /// As `all`, but only among these. Others of them stay as they are; unknown ones are skipped.
    case possible([Int64])
}
