import Observation

/// All downloads of a cache for a user interface: isolated to the main actor, and observable by views.
///
/// It follows the downloads for as long as the program holds it. Of changes in quick succession it shows the last,
/// so that ten thousand downloads do not keep the main actor busy.
@MainActor @Observable public final class DownloadTracker {
    /// All known downloads, in the order of the queue; ended ones last.
    public private(set) var downloads: [Download]
    /// The totals of the downloads that have not ended.
    public private(set) var totals: CacheDownloads.Totals
    @ObservationIgnored private var following: Task<Void, Never>?

    /// - Parameter cache: after it is closed, the last state remains.
    public init(_ cache: MediaCache) {
        let snapshots = cache.downloader.manager.snapshots
        let look = { @Sendable in
            let listing = snapshots.listing { _ in true }
            return (listing.downloads, listing.summary)
        }
        (downloads, totals) = look()
        let rings = cache.downloader.bell.rings()
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
        // Setting a property notifies its observers, even if the value is the same.
        if self.downloads != downloads { self.downloads = downloads }
        if self.totals != totals { self.totals = totals }
    }

    /// The download with this ID; nil if there is none.
    public func download(_ id: Download.ID) -> Download? { downloads.first { $0.id == id } }

    /// The downloads that have not ended.
    public var active: [Download] { downloads.filter { !$0.state.hasEnded } }
}
