import CachePolicy
import ControlAPI
import DiskCache

/// Why a cache operation failed. The description is one line that tells what to do.
package struct CacheAccessError: AdvisedError, Sendable {
    package let reason: String
    package let advice: Advice?
    /// The ranges that are not cached, if that is the reason.
    package var missing: [ByteSpan]?
    /// Whether segments, keys or playlists of a stream are not cached, and that is the reason.
    package var lacksSegments = false
    /// The corresponding status of the control interface, if there is one.
    package var status: Int?
    /// The download that prevents the operation, if that is the reason.
    var download: Int64?

    /// Nothing of the resource is cached.
    package var isNotCached: Bool { status == 404 }

    package init(_ reason: String, _ advice: Advice? = nil) { (self.reason, self.advice) = (reason, advice) }

    init(_ error: ControlError) {
        self.init(error.reason, error.advice)
        (missing, status, download) = (error.missing, error.status, error.download)
    }

    package static let interrupted = CacheAccessError("interrupted")
}
