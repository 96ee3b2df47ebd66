import Foundation

/// What becomes of attempts: how far they come, how they end, and when the next one is.
extension DownloadQueue {
    /// Seconds to the second and to the third attempt after network errors. There is no fourth.
    private static let networkDelays = [1.0, 4]
    private static let busyAttempts = 10
    /// Seconds, however often an origin was too busy.
    private static let longestBackoff = 300.0
    /// What an origin may ask for.
    static let longestDelay = 3600.0
    /// A source that says that it is offline may not know so when it is asked next: once a second is enough.
    private static let offlineDelay = 1.0

    /// How far one is that runs.
    mutating func progress(_ id: Int64, _ progress: DownloadProgress, monotonic: Double) {
        guard var job = jobs[id], job.state == .downloading else { return }
        let before = job
        let (failures, message) = (job.failures, job.message)
        job.take(progress)
        job.rate.sample(progress.bytes, at: monotonic)
        // The rate alone knows that time has passed.
        guard job.report != before.report || job.best != before.best else { return }
        put(job, isProgress: job.failures == failures && job.message == message)
    }

    /// An attempt has ended by itself.
    mutating func attemptEnded(_ id: Int64, _ end: DownloadEnd, now: Double, monotonic: Double) {
        guard var job = jobs[id], job.state == .downloading else { return }
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

    /// - Returns: after how many seconds there is another attempt; nil for none.
    fileprivate static func delay(afterNetworkFailures failures: Int) -> Double? {
        failures <= networkDelays.count ? networkDelays[failures - 1] : nil
    }

    fileprivate static func delay(afterBusyFailures failures: Int, retryAfter: Double?) -> Double? {
        guard failures < busyAttempts else { return nil }
        let wish = min(max(0, retryAfter ?? 0), longestDelay)
        return max(min(pow(2, Double(failures)), longestBackoff), wish)
    }

    fileprivate static func delayWhileOffline() -> Double { offlineDelay }
}

extension DownloadJob {
    /// More than ever before means that attempts are not in vain.
    fileprivate mutating func take(_ progress: DownloadProgress) {
        let known = self.progress
        self.progress = progress
        // What was a playlist's own length is not the presentation's.
        if progress.total == nil, progress.segments == nil { self.progress.total = known.total }
        if progress.fileName == nil { self.progress.fileName = known.fileName }
        guard progress.bytes > best else { return }
        best = progress.bytes
        forgetFailures()
        message = nil
    }

    /// - Returns: after how many seconds there is another attempt; nil for none.
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
