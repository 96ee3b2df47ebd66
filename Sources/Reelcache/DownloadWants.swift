import CachePolicy
import Downloads
import Synchronization

/// Downloads that are there only as long as somebody in this process waits for them, and how many do. Used inside of
/// the manager: between an order, whoever gives it, and what it says about it here nothing else happens.
final class DownloadWants: Sendable {
    private let waiting = Mutex<[Int64: Int]>([:])

    /// Somebody waits for a download from now on.
    /// - Parameter isNew: whether it is there because of that; else somebody has ordered it, who wants it in any case,
    ///   or waits too.
    func begin(_ id: Int64, isNew: Bool) {
        waiting.withLock { waiting in
            if isNew || waiting[id] != nil { waiting[id, default: 0] += 1 }
        }
    }

    /// Somebody waits no longer.
    /// - Returns: whether nobody wants it any more.
    func end(_ id: Int64) -> Bool {
        waiting.withLock { waiting in
            guard let count = waiting[id] else { return false }
            waiting[id] = count > 1 ? count - 1 : nil
            return count == 1
        }
    }

    /// How many wait for one that is there for them alone.
    func count(of id: Int64) -> Int { waiting.withLock { $0[id] ?? 0 } }

    /// Somebody has ordered it, here, over HTTP or on the command line: it stays, whoever waits for it.
    func keep(_ id: Int64) { waiting.withLock { $0[id] = nil } }
}

extension CacheDownloads {
    /// Orders a download to wait for it; `unwant` has to follow.
    func want(_ url: OriginURL, _ options: DownloadOptions) async throws(CacheError) -> Download {
        let (order, wants) = (DownloadOrder(url, options), cache.wants)
        let report = try await perform { manager throws(DownloadError) in
            let known = manager.snapshots.downloads(of: order.url).filter { !$0.state.hasEnded }.map(\.id)
            guard let report = try manager.add([order], waits: true).first else { return nil as DownloadReport? }
            wants.begin(report.id, isNew: !known.contains(report.id))
            return report
        }
        guard let report else { throw .disk("the download could not be saved") }
        return Download(report)
    }

    /// - Parameter isOver: the download has ended; else it is cancelled where nobody wants it any more.
    func unwant(_ id: Download.ID, isOver: Bool) async {
        let wants = cache.wants
        do {
            try await perform(id) { manager throws(DownloadError) in
                guard wants.end(id), !isOver, manager.snapshots[id]?.state.hasEnded == false else { return }
                _ = try manager.change(.ids([id]), DownloadChange(action: .cancel))
            }
        } catch {
            if error != .closed {
                cache.logger.error("could not cancel a download that nobody waits for any more: \(error)")
            }
        }
    }
}
