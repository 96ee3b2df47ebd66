import CachePolicy

/// A transfer from an origin at a moment.
package struct FetchSample: Sendable {
    /// What it does now.
    package enum Phase: String, Codable, Sendable, CaseIterable {
        /// Waits for its next attempt, or for a host that asked to be left alone.
        case waiting
        /// Waits for a slot, because enough transfers are running.
        case queued
        /// Looks up the name, connects, shakes hands.
        case connecting
        /// Waits for the response's header.
        case requested
        case receiving
        /// Receives nothing for now: it is far enough ahead of its readers, or waits for the disk.
        case held
        /// Everything has arrived, and is being written.
        case finishing
    }

    /// Who needs its bytes.
    package enum Purpose: String, Codable, Sendable, CaseIterable {
        /// A player waits for them.
        case play
        /// A player is expected to request them next.
        case ahead
        /// The rest of a file is fetched, because its rule says so.
        case fill
        case download
        /// A subscription, which looks for new episodes.
        case subscription
    }

    /// Unique among the transfers of this process.
    package var id: String
    package var key: CacheKey
    /// The presentation that it is for; nil for a resource by itself.
    package var whole: CacheKey?
    /// The URL that was asked for, and the one that was requested last, perhaps after a redirect.
    package var url: String
    package var requestedURL: String
    package var reason: FetchReason
    package var phase: Phase
    /// In the order of `Purpose`; empty while it is kept in case its player returns.
    package var purposes: [Purpose] = []
    /// The range that it fetches, half-open; without an upper end while that is unknown.
    package var from: Int64
    package var to: Int64?
    /// Everything of it up to this offset has arrived.
    package var arrived: Int64
    /// When it began; monotonic, in nanoseconds.
    package var began: UInt64

    package init(
        id: String, key: CacheKey, whole: CacheKey?, url: String, requestedURL: String, reason: FetchReason,
        phase: Phase,
        purposes: [Purpose], from: Int64, to: Int64?, arrived: Int64, began: UInt64
    ) {
        (self.id, self.key, self.whole, self.url, self.requestedURL) = (id, key, whole, url, requestedURL)
        (self.reason, self.phase, self.purposes) = (reason, phase, purposes)
        (self.from, self.to, self.arrived, self.began) = (from, to, arrived, began)
    }
}
