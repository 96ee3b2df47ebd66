import Activity
import HTTPModel

/// What is counted and noted of an exchange while it runs, for the access log and the activity.
struct ExchangeAccount {
    /// The status of the answer; nil before there is one.
    var status: Int?
    var cacheStatus: CacheStatus?
    /// Where to record the time from the request to the first byte of its body.
    var firstByteTimes: LatencyHistogram?
    var firstByteAt: UInt64?
    /// Bytes of the body that were stored before they were requested, and those that have arrived from an origin since.
    var bytesFromCache: Int64 = 0
    var bytesFromOrigin: Int64 = 0
    /// The URL of the requested resource for the access log; nil to log the target.
    var resourceURL: String?
    /// For the access log, the target of what never became a request, as far as it could be read; nil for a request.
    var unparsedTarget: String?
    /// Whether a limit refused it: such requests are counted, but have no line in the access log.
    var isRefused = false

    /// The target in bytes that are no request, as far as it can be told; `-` if there is none. Without its query: what
    /// cannot be read has no parameters that could be masked.
    static func target(inBroken bytes: some Sequence<UInt8>) -> String {
        let line = bytes.prefix(longestTarget).prefix { $0 != ASCII.lineFeed && $0 != ASCII.carriageReturn }
        let words = line.split(separator: ASCII.space, omittingEmptySubsequences: false)
        guard words.count > 1 else { return "-" }
        let target = words[1].prefix { $0 != UInt8(ascii: "?") }
        return target.isEmpty ? "-" : String(decoding: target, as: UTF8.self)
    }

    /// How many bytes are searched for a target.
    private static let longestTarget = 500
}
