import HTTPModel
import Upstream

/// What a play has got so far of a resource whose versions nothing strong tells apart, or that may not be stored.
///
/// Origins that stitch advertisements into each answer do so behind a redirect: a player that puts parts together gets
/// one version only where all of them come from where the first one came from.
struct OngoingPlay {
    /// Where it comes from, where the first URL redirects; nil where it does not.
    var source: String?
    /// By which two of its answers are told apart, as far as that goes; nil where the next one is expected to be
    /// another.
    var version: Version?
    /// Those that are under way.
    var transfers = 0
    /// On a clock that never goes back, in nanoseconds.
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

    /// A player that asks again after such a time begins a new play.
    private static let pause: UInt64 = 300 * 1_000_000_000

    /// - Parameter mayBegin: whether the request may be the first of a play: it is for the whole.
    func goesOn(at now: UInt64, mayBegin: Bool) -> Bool { transfers > 0 || !mayBegin && now &- lastUse < Self.pause }
}
