import Foundation

/// Attempts: their progress, their ends, and when the next one is due.
extension DownloadQueue {
    /// Seconds to the second and to the third attempt after network errors. There is no fourth.
    private static let networkDelays = [1.0, 4]
    private static let busyAttempts = 10
    /// In seconds, however often an origin was too busy.
    private static let longestBackoff = 300.0
    /// The longest `Retry-After` that is respected, in seconds.
    static let longestDelay = 3600.0
    /// In seconds. A source that was offline a moment ago may not be any more, so it is checked once a second.
    private static let offlineDelay = 1.0

    /// Takes the progress of a running download.
    mutating func progress(_ id: Int64, _ progress: DownloadProgress, monotonic: Double) {
        guard var job = self[id], job.state == .downloading else { return }
        let before = job
        let (failures, message) = (job.failures, job.message)
        job.take(progress)
        job.rate.sample(progress.bytes, at: monotonic)
        // Otherwise only the rate has changed, with time.
        guard job.report != before.report || job.best != before.best else { return }
        put(job, isProgress: job.failures == failures && job.message == message)
    }

    /// An attempt has ended by itself.
    mutating func attemptEnded(_ id: Int64, _ end: DownloadEnd, now: Double, monotonic: Double) {
        guard var job = self[id], job.state == .downloading else { return }
        switch end {
        case .completed(let progress):
            job.take(progress)
            job.forgetFailures()
            (job.message, job.restorePoint) = (progress.note, nil)
            self.end(job, as: .completed, now: now)
        case .failed(let fault, let progress):
            job.take(progress)
            job.message = fault.message
            guard let delay = job.fail(fault.kind) else { return self.end(job, as: .failed, now: now) }
            job.state = .waiting
            (job.retryAt, job.due) = (now + delay, monotonic + delay)
            put(job)
        }
    }

    /// - Returns: seconds until the next attempt; nil for none.
    fileprivate static func delay(afterNetworkFailures failures: Int) -> Double? {
        failures <= networkDelays.count ? networkDelays[failures - 1] : nil
    }

    fileprivate static func delay(afterBusyFailures failures: Int, retryAfter: Double?) -> Double? {
        guard failures < busyAttempts else { return nil }
        let requested = min(max(0, retryAfter ?? 0), longestDelay)
        return max(min(pow(2, Double(failures)), longestBackoff), requested)
    }

    fileprivate static func delayWhileOffline() -> Double { offlineDelay }
}

extension DownloadJob {
    /// Takes the progress. If more bytes are present than ever before, attempts are not in vain.
    fileprivate mutating func take(_ progress: DownloadProgress) {
        let known = self.progress
        self.progress = progress
        // A playlist's own length is not the presentation's total.
        if progress.total == nil, progress.segments == nil { self.progress.total = known.total }
        if progress.fileName == nil { self.progress.fileName = known.fileName }
        guard progress.bytes > best else { return }
        best = progress.bytes
        forgetFailures()
        message = nil
    }

    /// - Returns: seconds until the next attempt; nil for none.
    fileprivate mutating func fail(_ kind: DownloadFault.Kind) -> Double? {
        switch kind {
        case .network:
            networkFailures += 1
            return DownloadQueue.delay(afterNetworkFailures: networkFailures)
        case .busy(let retryAfter):
            busyFailures += 1
            return DownloadQueue.delay(afterBusyFailures: busyFailures, retryAfter: retryAfter)
        case .offline: return DownloadQueue.delayWhileOffline()
        case .final: return nil
        }
    }
}
