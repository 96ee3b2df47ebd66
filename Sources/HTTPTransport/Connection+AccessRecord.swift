import EventIO
import Glibc
import HTTPModel

extension Connection {
    /// Whether requests are recorded.
    var isRecorded: Bool { server.recorder?.isOn == true }

    /// Records an exchange that is over.
    func record(_ exchange: Exchange, isComplete: Bool) {
        guard let recorder = server.recorder, recorder.isOn, !exchange.isRefused else { return }
        guard !exchange.isRoutine || exchange.status ?? 0 >= 400 else { return }
        let client = exchange.forwarded?.client?.description ?? clientText
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let nanoseconds = MonotonicClock.nanoseconds() -| exchange.startedAt
        // no trap: this machine's clock
        let began = Int64(now.tv_sec) * 1000 + (Int64(now.tv_nsec) - Int64(clamping: nanoseconds)) / 1_000_000
        let request = exchange.request
        recorder.record(
            AccessRecord(
                time: began, client: client,
                method: exchange.unparsedTarget == nil ? request.method.name : "-",
                url: exchange.unparsedTarget ?? exchange.resourceURL ?? request.target,
                range: request.combined("Range"), version: request.version, status: exchange.status,
                bytes: exchange.isAnswered ? Int64(output.bodyBytesTaken) : 0,
                cacheBytes: exchange.bytesFromCache, originBytes: exchange.bytesFromOrigin,
                firstByteMicroseconds: exchange.firstByteAt.map { ($0 -| exchange.startedAt) / 1000 },
                microseconds: nanoseconds / 1000, isComplete: isComplete,
                userAgent: request.combined("User-Agent"), referrer: request.combined("Referer"),
                cacheStatus: exchange.cacheStatus))
    }

    /// The target in bytes that are no request, as far as it can be told; `-` if there is none. Without its query: what
    /// cannot be read has no parameters that could be masked.
    static func target(inBroken bytes: some Sequence<UInt8>) -> String {
        let line = bytes.prefix(longestTarget).prefix { $0 != ASCII.lineFeed && $0 != UInt8(ascii: "\r") }
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count > 1 else { return "-" }
        let target = words[1].prefix { $0 != UInt8(ascii: "?") }
        return target.isEmpty ? "-" : String(decoding: target, as: UTF8.self)
    }

    /// How many bytes are searched for a target.
    private static let longestTarget = 500
}
