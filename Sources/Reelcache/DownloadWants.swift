import CachePolicy
import Downloads
import Foundation
import Synchronization

/// Counts the waiters of downloads that exist only as long as somebody in this process waits for them. Used inside
/// the manager, so that nothing happens between an order and its entry here.
final class DownloadWants: Sendable {
    private let waiting = Mutex<[Int64: Int]>([:])

    /// Adds a waiter to a download.
    /// - Parameter isNew: whether this waiter's order created the download. Otherwise it was ordered to stay in any
    ///   case, or has other waiters.
    func begin(_ id: Int64, isNew: Bool) {
        waiting.withLock { waiting in
            if isNew || waiting[id] != nil { waiting[id, default: 0] += 1 }
        }
    }

    /// Removes a waiter.
    /// - Returns: whether nobody needs the download any more.
    func end(_ id: Int64) -> Bool {
        waiting.withLock { waiting in
            guard let count = waiting[id] else { return false }
            waiting[id] = count > 1 ? count - 1 : nil
            return count == 1
        }
    }

    /// The number of waiters of a download that exists only for them.
    func count(of id: Int64) -> Int { waiting.withLock { $0[id] ?? 0 } }

    /// Keeps a download regardless of its waiters, because it was ordered here, over HTTP or on the command line.
    func keep(_ id: Int64) { waiting.withLock { $0[id] = nil } }
}

extension CacheDownloads {
    /// Downloads a resource while waiting for the end.
    /// - Parameter report: called with each event before the last.
    /// - Returns: the last event; nil if the task was cancelled.
    func follow(_ url: URL, _ options: DownloadOptions, _ report: (DownloadEvent) -> Void) async
        -> DownloadEvent?
    {
        let ordered: Download
        do throws(CacheError) { ordered = try await want(OriginURL(url), options) } catch {
            return .failed(error)
        }
        var end: DownloadEvent?
        for await event in events(of: ordered.id, lastKnown: ordered) {
            if case .progress = event { report(event) } else { end = event }
        }
        await unwant(ordered.id, isOver: end != nil)
        return end
    }

    /// Orders a download in order to wait for it. Each call needs a call of `unwant` later.
    private func want(_ url: OriginURL, _ options: DownloadOptions) async throws(CacheError) -> Download {
        let (order, wants) = (DownloadOrder(url: url, options: options), cache.downloader.wants)
        let download = try await perform { manager throws(DownloadError) in
            let known = manager.snapshots.downloads(of: order.url).filter { !$0.state.hasEnded }.map(\.id)
            guard let download = try manager.add([order], waits: true).first else { return nil as Download? }
            wants.begin(download.id, isNew: !known.contains(download.id))
            return download
        }
        guard let download else { throw .disk("the download could not be saved") }
        return download
    }

    /// - Parameter isOver: whether the download has ended; otherwise it is cancelled if nobody needs it any more.
    private func unwant(_ id: Download.ID, isOver: Bool) async {
        let wants = cache.downloader.wants
        do {
            try await perform(id) { manager throws(DownloadError) in
                guard wants.end(id), !isOver, manager.snapshots[id]?.state.hasEnded == false else { return }
                _ = try manager.change(.ids([id]), DownloadChange(action: .cancel))
            }
        } catch {
            if error != .closed {
                cache.logger.error("could not cancel a download that nobody is waiting for: \(error)")
            }
        }
    }
}
