/// How far a reader is that takes all changes, some at a time: in the order in which they came, each download as
/// it is now. What has changed again since comes later.
package struct DownloadReading: Sendable, Hashable {
    /// The revision up to which changes were read.
    package internal(set) var changes: UInt64
    /// The same for forgotten downloads.
    var removals: UInt64
    /// Downloads that had ended by this revision are not wanted.
    var ended: UInt64 = 0
    /// The greatest of the wanted IDs that were reported as unknown.
    var unknown: Int64 = .max

    /// Some changes.
    package struct Step {
        package let changed: [(revision: UInt64, report: Download)]
        /// What the reader knows and was forgotten before its end was read, and wanted IDs that are unknown; sorted.
        package let removed: [Int64]
        package internal(set) var reading: DownloadReading
        /// The current revision.
        package let revision: UInt64

        /// Whether these are all.
        package var isLast: Bool {
            reading.changes == revision && reading.removals == revision && reading.unknown == .max
        }

        /// Without the changes after a revision: they are left for the next step.
        package mutating func end(at revision: UInt64) { reading.changes = revision }
    }
}
