import HTTPModel

/// For how long a playlist that goes on stands for its stream's present state (RFC 8216 §6.2.2, §6.3.4). In nanoseconds
/// of a clock that never goes back: what counts here is often less than a second.
///
///     answered ──── fresh ────┤──── asked again ────┤ silent: an error, rather than the same segments for ever
package struct LiveTiming: Sendable, Equatable {
    package let freshFor: UInt64
    package let silentAfter: UInt64
    /// When its origin said last that this is the stream's state.
    package let answeredAt: UInt64

    package init(freshFor: UInt64, silentAfter: UInt64, answeredAt: UInt64) {
        (self.freshFor, self.silentAfter, self.answeredAt) = (freshFor, silentAfter, answeredAt)
    }

    /// Of a playlist that is just coming in: what it says of itself is known in a moment.
    package static func unread(at now: UInt64) -> LiveTiming {
        LiveTiming(freshFor: 500_000_000, silentAfter: .max, answeredAt: now)
    }

    /// The same for a later answer.
    package func answered(at now: UInt64) -> LiveTiming {
        LiveTiming(freshFor: freshFor, silentAfter: silentAfter, answeredAt: now)
    }

    /// Nanoseconds for which it is fresh yet; 0 where it is not.
    package func remaining(at now: UInt64) -> UInt64 {
        let age = now -| answeredAt
        return age < freshFor ? freshFor - age : 0 // no trap: less than it
    }

    /// Whether players would be given the same segments for longer than they can wait for the next.
    package func isSilent(at now: UInt64) -> Bool { now -| answeredAt >= silentAfter }

    /// What `Freshness` says of it, in whole seconds: at least 1 while it is fresh.
    /// - Parameter age: of the response, in seconds.
    package func freshness(age: Int64, at now: UInt64) -> Freshness {
        let left = remaining(at: now), second: UInt64 = 1_000_000_000
        let seconds = Int64(clamping: left / second) + (left % second > 0 ? 1 : 0) // no trap: far from the greatest
        let staleness = Int64(clamping: (now -| answeredAt -| freshFor) / second) // no trap: not 0
        return Freshness(lifetime: age +| seconds -| (left > 0 ? 0 : staleness), age: age, source: .stream)
    }
}
