import HTTPModel

/// How long a live playlist represents its stream's current state (RFC 8216 §6.2.2, §6.3.4). In nanoseconds of a
/// monotonic clock, because the periods are often shorter than a second.
///
///     answered ──── fresh ────┤──── revalidated ────┤ silent: an error, rather than the same segments forever
package struct LiveTiming: Sendable, Equatable {
    package let freshFor: UInt64
    package let silentAfter: UInt64
    /// When the origin last confirmed that this is the stream's state.
    package let answeredAt: UInt64

    package init(freshFor: UInt64, silentAfter: UInt64, answeredAt: UInt64) {
        (self.freshFor, self.silentAfter, self.answeredAt) = (freshFor, silentAfter, answeredAt)
    }

    /// For a playlist that is still arriving and will be parsed in a moment.
    package static func unread(at now: UInt64) -> LiveTiming {
        LiveTiming(freshFor: 500_000_000, silentAfter: .max, answeredAt: now)
    }

    /// The same timing after a later answer.
    package func answered(at now: UInt64) -> LiveTiming {
        LiveTiming(freshFor: freshFor, silentAfter: silentAfter, answeredAt: now)
    }

    /// How long the playlist stays fresh, in nanoseconds; 0 if it is stale.
    package func remaining(at now: UInt64) -> UInt64 {
        let age = now -| answeredAt
        return age < freshFor ? freshFor - age : 0 // no trap: less than it
    }

    /// Whether players would get the same segments for longer than they can wait for the next one.
    package func isSilent(at now: UInt64) -> Bool { now -| answeredAt >= silentAfter }

    /// The equivalent `Freshness` in whole seconds; at least 1 second remains while the playlist is fresh.
    /// - Parameter age: the age of the response, in seconds.
    package func freshness(age: Int64, at now: UInt64) -> Freshness {
        let left = remaining(at: now), second: UInt64 = 1_000_000_000
        let seconds = Int64(clamping: left / second) + (left % second > 0 ? 1 : 0) // no trap: far from the greatest
        let staleness = Int64(clamping: (now -| answeredAt -| freshFor) / second) // no trap: not 0
        return Freshness(lifetime: age +| seconds -| (left > 0 ? 0 : staleness), age: age, source: .stream)
    }
}
