import Observation

/// All downloads of a cache for a user interface: on the main actor, and observed by what shows them.
///
/// It follows the downloads for as long as somebody has it. Of changes that come close together it shows the last, so
/// that ten thousand downloads do not keep the main actor busy.
@MainActor @Observable public final class DownloadTracker {
    /// All that are known, in the order in which they go; those that have ended last.
    public private(set) var downloads: [Download]
    /// Those that have not ended, together.
    public private(set) var totals: CacheDownloads.Totals
    @ObservationIgnored private var following: Task<Void, Never>?

    /// - Parameter cache: when it is closed, what is shown stays as it is.
    public init(_ cache: MediaCache) {
        let snapshots = cache.manager.snapshots
        let look = { @Sendable in
            let listing = snapshots.listing { _ in true }
            return (listing.downloads.map(Download.init), CacheDownloads.Totals(listing.summary))
        }
        (downloads, totals) = look()
        let rings = cache.bell.rings()
        following = Task.detached { [weak self] in
            for await _ in rings {
                let (downloads, totals) = look()
                guard let self else { return }
                await self.show(downloads, totals)
            }
        }
    }

    deinit { following?.cancel() }

    private func show(_ downloads: [Download], _ totals: CacheDownloads.Totals) {
        // What is set is shown anew, also where it is the same.
        if self.downloads != downloads { self.downloads = downloads }
        if self.totals != totals { self.totals = totals }
    }

    /// The download of that name; nil where there is none.
    public func download(_ id: Download.ID) -> Download? { downloads.first { $0.id == id } }

    /// Those that have not ended.
    public var active: [Download] { downloads.filter { !$0.state.hasEnded } }
}
