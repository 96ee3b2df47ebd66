import Foundation

/// Attempts: their progress, their ends, and when the next one is due.
extension DownloadQueue {
    /// Takes the progress of a running download.
    mutating func progress(_ id: Int64, _ progress: DownloadProgress, monotonic: Double) {
        guard var job = self[id], job.state == .downloading else { return }
        let before = job
        let (failures, message) = (job.failures, job.message)
        if job.take(progress) { endRest(of: job.order.url.origin) }
        job.rate.sample(progress.bytes, at: monotonic)
        // Otherwise only the rate has changed, with time.
        guard job.report != before.report || job.best != before.best else { return }
        put(job, isProgress: job.failures == failures && job.message == message)
    }

    /// An attempt has ended by itself.
    mutating func attemptEnded(_ id: Int64, _ end: DownloadEnd, now: Double, monotonic: Double) {
        guard var job = self[id], job.state == .downloading else { return }
        job.isScout = false
        switch end {
        case .completed(let progress):
            job.complete(progress)
            endRest(of: job.order.url.origin)
            self.end(job, as: .completed, now: now)
        case .failed(let fault, let progress):
            if job.take(progress) { endRest(of: job.order.url.origin) }
            job.message = fault.message
            let delay = job.fail(fault.kind, retryFor: job.isAwaited ? 0 : Double(settings.retryFor), now: now)
            noteOrigin(of: job, fault, now: now, monotonic: monotonic)
            guard var delay else { return self.end(job, as: .failed, now: now) }
            // It would only wait for its origin then.
            if !job.isAwaited, !job.isRecording, let rest = rests[job.order.url.origin] {
                delay = max(delay, rest.until - monotonic)
            }
            (job.state, job.retryAt) = (.waiting, now + delay)
            job.wait(delay, monotonic)
            if delay == 0 { (job.message, job.retryAt, job.due) = (nil, nil, nil) }
            put(job)
        }
    }
}

extension DownloadJob {
    /// So many attempts follow soon on each other; then a download is held for longer each time.
    static let quickAttempts = 3
    /// The first time for which one is held, in seconds, less `longestSpread`.
    static let firstHold = 60.0
    /// The longest time to the next attempt, and the longest `Retry-After` that is respected, in seconds.
    static let longestDelay = 3600.0
    /// The part of the time by which downloads that are held differ at most.
    static let longestSpread = 0.25
    /// In seconds. A source that was offline a moment ago may not be any more.
    private static let offlineDelay = 1.0

    /// How long one waits for the next attempt, in seconds.
    /// - Parameters:
    ///   - failures: attempts in a row that have failed.
    ///   - spread: the fraction that held ones wait less, so that what failed together is not tried together.
    static func delay(after failures: Int, _ kind: DownloadFault.Kind, spread: Double = 0) -> Double {
        var delay = failures == 1 ? 1.0 : 4
        if failures >= quickAttempts {
            delay = min(firstHold * pow(4, Double(min(failures, 10) - quickAttempts)), longestDelay) * (1 - spread)
        }
        guard case .busy(let retryAfter) = kind else { return delay }
        return max(failures < quickAttempts ? 2 * Double(failures) : delay, min(max(0, retryAfter ?? 0), longestDelay))
    }

    /// Lets the next attempt be due after some seconds.
    mutating func wait(_ delay: Double, _ monotonic: Double) {
        (due, isPutOff) = (monotonic + delay, delay >= Self.firstHold * (1 - Self.longestSpread))
    }

    /// Lets the next attempt begin. If it was due long ago, the machine was off or slept: that time does not count
    /// among the time for which it is retried.
    mutating func becomeReady(now: Double) {
        if let retryAt, let since = failingSince, now - retryAt > Self.longestDelay {
            failingSince = since + (now - retryAt)
        }
        (due, retryAt, idleSince, isPutOff) = (nil, nil, now, false)
    }

    /// Begins. If it could have done so long ago, it was held or paused: that time does not count either.
    mutating func begin(now: Double) {
        started = started ?? now
        if let idleSince, let since = failingSince, now - idleSince > Self.longestDelay {
            failingSince = since + (now - idleSince)
        }
        idleSince = now
    }

    fileprivate mutating func complete(_ progress: DownloadProgress) {
        _ = take(progress)
        forgetFailures()
        (message, restorePoint, failedFirst) = (progress.note, nil, nil)
    }

    /// Takes the progress. If more bytes are present than ever before, attempts are not in vain.
    /// - Returns: whether more are present than when it was last taken.
    fileprivate mutating func take(_ progress: DownloadProgress) -> Bool {
        let known = self.progress
        self.progress = progress
        // A playlist's own length is not the presentation's total.
        if progress.total == nil, progress.segments == nil { self.progress.total = known.total }
        if progress.fileName == nil { self.progress.fileName = known.fileName }
        if progress.title == nil { self.progress.title = known.title }
        // An attempt that finds no stream says nothing of what has been recorded.
        if order.recordFor != nil, progress.segments ?? 0 == 0 {
            (self.progress.bytes, self.progress.segments) = (known.bytes, known.segments)
        }
        if self.progress.bytes > best {
            best = self.progress.bytes
            forgetFailures()
            (message, failedFirst) = (nil, nil)
        }
        return self.progress.bytes > known.bytes
    }

    /// - Returns: seconds until the next attempt; nil for none.
    fileprivate mutating func fail(_ kind: DownloadFault.Kind, retryFor: Double, now: Double) -> Double? {
        let delay = delay(after: kind, retryFor: retryFor, now: now)
        if delay == nil { failedFirst = failedFirst ?? now }
        return delay
    }

    private mutating func delay(after kind: DownloadFault.Kind, retryFor: Double, now: Double) -> Double? {
        switch kind {
        case .network: networkFailures += 1
        case .busy: busyFailures += 1
        case .offline: return Self.offlineDelay
        case .moved where !hasMoved:
            hasMoved = true
            return 0
        case .moved: networkFailures += 1
        case .final: return nil
        }
        let since = failingSince ?? now
        failingSince = since
        // A recording ends with its time, reached or not.
        let failures = isRecording ? min(failures, Self.quickAttempts - 1) : failures
        var kind = kind
        if isRecording, case .busy(let retryAfter?) = kind { kind = .busy(retryAfter: min(retryAfter, Self.firstHold)) }
        let delay = Self.delay(after: failures, kind, spread: Double(id % 16) / 15 * Self.longestSpread)
        return failures < Self.quickAttempts || now + delay < since + retryFor ? delay : nil
    }
}
