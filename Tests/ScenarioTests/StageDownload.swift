import CachePolicy
import DiskCache
import Downloads
import Glibc
import Playlists
import Reelcache
import TestSupport

/// A download of a stage's, without a queue: what it brings, and how it ends.
final class StageDownload: Sendable {
    private let end = Monitor<DownloadEnd?>(nil)
    private let running: any RunningDownload

    init(
        _ stage: Stage, _ path: String, first: Int64? = nil, last: Int64? = nil, connections: Int = 1,
        isPinned: Bool = true,
        limitRate: Int64? = nil, renditions: RenditionChoice = RenditionChoice(), recordFor: Int64? = nil,
        recordedFrom: Int64? = nil
    ) throws {
        var order = DownloadOrder(
            url: try OriginURL(url: stage.origin.url(path)),
            options: DownloadOptions {
                ($0.first, $0.last, $0.connections, $0.isPinned) = (first, last, connections, isPinned)
                ($0.bytesPerSecond, $0.renditions, $0.recordFor) = (limitRate, renditions, recordFor)
            })
        order.recordedFrom = recordedFrom ?? stage.clock.now
        running = stage.proxy.cache.downloader.source.begin(order) { [end] result in end.update { $0 = result } }
    }

    var progress: DownloadProgress { running.progress }

    /// How many bytes its transfers have delivered.
    var fetched: Int64 { running.fetched }

    func stop() { running.stop() }

    func limit(to rate: Int64?) { running.limit(to: rate) }

    /// Whether it has ended by itself.
    var hasEnded: Bool { end.read { $0 != nil } }

    /// Waits for its end.
    func result() throws -> DownloadEnd { try end.wait(for: "the end of a download") { $0 } }

    /// Waits until it is complete.
    func complete() throws -> DownloadProgress {
        switch try result() {
        case .completed(let progress): return progress
        case .failed(let fault, _): throw fault
        }
    }

    /// Waits until it fails.
    func fault() throws -> DownloadFault? {
        if case .failed(let fault, _) = try result() { return fault }
        return nil
    }

    /// Waits until its transfers have delivered so much.
    func wait(forFetched count: Int64) throws {
        try eventually("\(count) bytes", instead: "\(fetched)") { fetched >= count }
    }

    /// Waits until so much is there.
    func wait(forBytes count: Int64) throws {
        try eventually("\(count) bytes", instead: "\(progress)") { progress.bytes >= count }
    }
}

extension Stage {
    /// Downloads a path of the origin.
    func download(
        _ path: String, first: Int64? = nil, last: Int64? = nil, connections: Int = 1, isPinned: Bool = true,
        limitRate: Int64? = nil, renditions: RenditionChoice = RenditionChoice(), recordFor: Int64? = nil,
        recordedFrom: Int64? = nil
    ) throws -> StageDownload {
        try StageDownload(
            self, path, first: first, last: last, connections: connections, isPinned: isPinned, limitRate: limitRate,
            renditions: renditions, recordFor: recordFor, recordedFrom: recordedFrom)
    }

    /// What is cached of a path before a download.
    func claim(_ path: String) throws -> RestorePoint {
        try proxy.cache.downloader.restorePoints.restorePoint(try OriginURL(url: origin.url(path)))
    }
}
