import Downloads

/// The operations of commands on downloads, whether a running proxy owns the cache (`RunningProxy`) or no process
/// does. All of them block and throw `CacheAccessError`.
package protocol DownloadAccess {
    /// Whether orders are carried out, rather than kept for the next process that does so.
    var isFetching: Bool { get }

    func downloads() throws -> DownloadListing

    func add(_ orders: [DownloadOrder]) throws -> [DownloadReport]

    func change(_ selection: DownloadSelection, _ change: DownloadChange) throws -> [DownloadReport]

    /// Changes the settings of all downloads together, until the process that owns the cache ends.
    func set(_ settings: DownloadSettings) throws -> DownloadSummary

    /// The ended downloads, newest first.
    func history(limit: Int?, category: String?) throws -> [DownloadReport]

    /// - Returns: the number of dropped entries.
    func clearHistory() throws -> Int
}

/// An event of downloads, as the proxy reports it.
package enum DownloadNews: Sendable, Equatable {
    case download(DownloadReport)
    case summary(DownloadSummary)
    /// The download was dropped from the history before its end was reported, so its outcome is unknown here.
    case removed(Int64)
}
