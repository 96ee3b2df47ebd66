import Administration
import CachePolicy
import Downloads
import HTTPModel

extension Download {
    /// A short name for display.
    package var name: String { DisplayName(title: title, fileName: fileName, url: urlText).description.printable }

    /// 0 to 100, rounded down; nil while the total is not known.
    package var percent: Int? {
        if total == nil, let segments, let totalSegments { return Self.percent(segments, of: totalSegments) }
        return total.map { Self.percent(bytes, of: $0) }
    }

    /// `120/300 segments`, or `120 segments` while the total is not known; nil for a file.
    package var segmentText: String? {
        segments.map { count in totalSegments.map { "\(count)/\($0) segments" } ?? "\(count) segments" }
    }

    static func percent(_ bytes: Int64, of total: Int64) -> Int {
        total > 0 ? min(100, Int(saturating: Double(bytes) / Double(total) * 100)) : 100
    }

    /// `34.5 MB of 100 MB`, or `34.5 MB` while the total is not known.
    package var amount: String {
        guard let segmentText, state != .completed else { return Self.amount(bytes, of: total) }
        return "\(segmentText), \(ByteSize(bytes: bytes))"
    }

    static func amount(_ bytes: Int64, of total: Int64?) -> String {
        guard let total, total != bytes else { return ByteSize(bytes: bytes).description }
        return "\(ByteSize(bytes: bytes)) of \(ByteSize(bytes: total))"
    }

    /// The state in one line; nil if the download only waits for its turn.
    /// - Parameter now: seconds since 1970.
    package func line(now: Int64) -> String? {
        switch state {
        case .waiting: attempt(now: now).map { "waiting \(name): \($0)" }
        case .downloading: "downloading \(name)" + (bytes > 0 ? ", \(amount) so far" : "")
        // Before the cache is checked, the amount says nothing about what is cached.
        case .paused: "paused \(name)" + (total == nil && bytes == 0 ? "" : ", \(amount)")
        case .completed:
            "completed \(name), \(ByteSize(bytes: bytes))" + (segments.map { " in \($0) segments" } ?? "")
                + (note.map { ": \($0)" } ?? "")
        case .failed: "failed \(urlText.printable): \(reason)"
        case .cancelled: "cancelled \(urlText.printable)"
        }
    }

    /// Why the download is not running, and when it is retried; nil if it only waits for its turn.
    package func attempt(now: Int64) -> String? {
        guard state == .waiting, let retryAt = retryDate?.seconds else { return nil }
        return "\(reason); next attempt " + (retryAt > now ? "in \(TimeSpan(seconds: retryAt -| now))" : "now")
    }

    /// Why the download has to wait although it is its turn, such as a cap of its feed; nil if it need not.
    /// - Parameter known: a reason to leave out.
    func hold(besides known: String?) -> String? {
        guard isHeld == true, let message, message != known else { return nil }
        return message.printable
    }

    /// A remark about a completed stream, such as its renditions; nil for none.
    var note: String? { state == .completed && segments != nil ? message?.printable : nil }

    package var reason: String { message?.printable ?? "the reason is not known" }
}

/// Times and rates in progress displays.
package enum ProgressText {
    /// `5.00 MB/s`
    package static func rate(_ bytes: Int64) -> String { "\(ByteSize(bytes: bytes))/s" }

    /// As on a clock: `0:07`, `4:05`, `1:23:45`; with days if it is that long.
    package static func time(_ seconds: Int64) -> String {
        let seconds = max(0, seconds)
        if seconds >= 48 * 3600 { return TimeSpan(seconds: seconds).description }
        let (minutes, rest) = (seconds / 60 % 60, twoDigits(seconds % 60))
        return seconds >= 3600 ? "\(seconds / 3600):\(twoDigits(minutes)):\(rest)" : "\(minutes):\(rest)"
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
