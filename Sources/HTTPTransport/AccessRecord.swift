import EventIO
import Glibc
import HTTPModel

/// The outcome of one request: a line of the access log.
package struct AccessRecord: Sendable, Equatable {
    /// When the request's header was complete, in milliseconds since 1970.
    package var time: Int64
    /// Address and port; without a port where a balancer does not name it.
    package var client: String
    package var method: String
    /// The URL of the requested resource, or the request target if there is none.
    package var url: String
    package var range: String?
    package var version: HTTPVersion
    /// Nil if the client disconnected before it had an answer.
    package var status: Int?
    /// Bytes of the body that were given to the connection; of these, the bytes that were already stored, and
    /// those that arrived from the origin meanwhile.
    package var bytes, cacheBytes, originBytes: Int64
    /// From the complete header of the request to the first byte of the body, and to the end.
    package var firstByteMicroseconds: UInt64?
    package var microseconds: UInt64
    /// Whether the whole answer was sent.
    package var isComplete: Bool
    package var userAgent: String?
    package var referrer: String?
    package var cacheStatus: CacheStatus?
}

extension Exchange {
    /// Its record, once it is over.
    func record(isComplete: Bool) -> AccessRecord {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let nanoseconds = MonotonicClock.nanoseconds() -| startedAt
        return AccessRecord(
            // no trap: this machine's clock
            time: Int64(now.tv_sec) * 1000 + (Int64(now.tv_nsec) - Int64(clamping: nanoseconds)) / 1_000_000,
            client: clientText, method: account.unparsedTarget == nil ? request.method.name : "-",
            url: account.unparsedTarget ?? account.resourceURL ?? request.target, range: request.combined("Range"),
            version: request.version, status: account.status, bytes: bytesOfBody,
            cacheBytes: account.bytesFromCache, originBytes: account.bytesFromOrigin,
            firstByteMicroseconds: account.firstByteAt.map { ($0 -| startedAt) / 1000 },
            microseconds: nanoseconds / 1000, isComplete: isComplete, userAgent: request.combined("User-Agent"),
            referrer: request.combined("Referer"), cacheStatus: account.cacheStatus)
    }
}

/// Receives a record of each answered request. Called on loops: it must not block.
package protocol AccessRecorder: AnyObject, Sendable {
    /// Whether records are needed; if not, none are made.
    var isOn: Bool { get }
    func record(_ record: AccessRecord)
}
