import HTTPModel
import Upstream

/// The play of a resource that must not be stored, or that has no strong validator: where its bytes came from, and
/// which version they are.
///
/// Origins that stitch advertisements into each answer do so behind a redirect. A player that combines parts gets one
/// version only if all of them come from the URL that sent the first one.
struct OngoingPlay {
    /// The URL that the first one redirects to; nil without a redirect.
    var source: String?
    /// Tells two of its answers apart, as far as possible; nil if the next answer is expected to differ.
    var version: Version?
    /// The number of transfers under way.
    var transfers = 0
    /// On a monotonic clock, in nanoseconds.
    var lastUse: UInt64

    struct Version: Equatable {
        let total: Int64?
        let etag: String?
        let lastModified: String?

        init(_ head: UpstreamHead) {
            total = head.status == 206 ? head.contentRange?.total : head.contentLength
            (etag, lastModified) = (head.fields["ETag"], head.fields["Last-Modified"])
        }
    }

    /// A player that returns after this pause begins a new play.
    private static let pause: UInt64 = 300 * 1_000_000_000

    /// - Parameter mayBegin: whether the request may be the first of a play, because it is for the whole.
    func continues(at now: UInt64, mayBegin: Bool) -> Bool { transfers > 0 || !mayBegin && now &- lastUse < Self.pause }
}
