import CachePolicy
import DiskCache

/// Why a subscription cannot be added, changed or checked. The description is one line that names the remedy.
package struct SubscriptionError: AdvisedError, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// The feed is not subscribed.
        case unknown
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

    static func invalid(_ reason: String) -> SubscriptionError { SubscriptionError(.invalid, reason) }

    static func unknown(_ url: OriginURL) -> SubscriptionError {
        SubscriptionError(
            .unknown, "\(url.absolute) is not subscribed: list the feeds to see which are")
    }

    static let closed = SubscriptionError(.closed, "the cache is closing")

    init(_ failure: SideDatabase.Failure) { self.init(.disk, failure.reason, failure.advice) }
}
