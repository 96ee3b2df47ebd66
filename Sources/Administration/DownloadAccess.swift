import Downloads

/// What commands do with downloads, whether a proxy owns the cache (`RunningProxy`) or nobody. All of it blocks, and
/// throws `CacheAccessError`.
package protocol DownloadAccess {
    /// Whether orders are carried out, or only kept for the next process that does.
    var isFetching: Bool { get }

    func downloads() throws -> DownloadListing

    func add(_ orders: [DownloadOrder]) throws -> [DownloadReport]

    func change(_ selection: DownloadSelection, _ change: DownloadChange) throws -> [DownloadReport]

    /// Changes what holds for all downloads, until the process that owns the cache ends.
    func set(_ settings: DownloadSettings) throws -> DownloadSummary

    /// The newest first.
    func history(limit: Int?, category: String?) throws -> [DownloadReport]

    /// - Returns: how many are forgotten.
    func clearHistory() throws -> Int
}

/// What happens to downloads, as it is told.
package enum DownloadNews: Sendable, Equatable {
    case download(DownloadReport)
    case summary(DownloadSummary)
    /// It is forgotten before its end was told: how it ended is not known here.
    case removed(Int64)
}
