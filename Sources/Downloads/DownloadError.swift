import CachePolicy
import DiskCache

/// Why a download cannot be ordered or changed, or a feed not be subscribed or checked. The description is one line that
/// names the remedy.
package struct DownloadError: AdvisedError, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// There is no such download.
        case unknown
        /// The feed is not subscribed.
        case notSubscribed
        /// Its state does not allow this.
        case conflict
        /// The request makes no sense.
        case invalid
        /// The feed cannot be fetched or read.
        case unreadable
        /// The cache is closing.
        case closed
        /// The database cannot be read or written.
        case disk
    }

    package let kind: Kind
    package let reason: String
    package let advice: Advice?

    package init(_ kind: Kind, _ reason: String, _ advice: Advice? = nil) {
        (self.kind, self.reason, self.advice) = (kind, reason, advice)
    }

    init(_ failure: SideDatabase.Failure) { self.init(.disk, failure.reason, failure.advice) }

    static func invalid(_ reason: String) -> DownloadError { DownloadError(.invalid, reason) }

    static func notSubscribed(_ url: OriginURL) -> DownloadError {
        DownloadError(.notSubscribed, "\(url.absolute) is not subscribed: list the feeds to see which are")
    }

    static let closed = DownloadError(.closed, "the cache is closing")
}
