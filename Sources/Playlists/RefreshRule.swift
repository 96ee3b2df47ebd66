import CachePolicy
import HTTPModel

/// How long a live playlist may be taken for the stream's current state.
///
///     answered ──── fresh ────┤──── revalidated ────┤ silent: an error, rather than the same segments forever
///              freshFor                              silentAfter
package struct RefreshRule: Sendable, Equatable {
    /// The time since the origin answered with it. Zero: it is revalidated on every request.
    package let freshFor: Duration
    /// The time since the origin last answered at all: after it, a player that gets the same playlist again would
    /// stall without notice.
    package let silentAfter: Duration

    /// Whatever duration segments claim to have: a live playlist that is an hour old is useless.
    private static let longest: Duration = .seconds(3600)

    /// Limits both to an hour.
    /// - Parameter unit: the target duration, or its substitute. Origins publish within one and a half times this
    ///   duration (RFC 8216 §6.2.2).
    init(freshFor: Duration, unit: Duration) {
        self.freshFor = min(freshFor, Self.longest)
        silentAfter = min(unit, Self.longest) * 3 / 2
    }
}

extension LiveTiming {
    /// - Parameter now: when the origin answered with the playlist, in nanoseconds of a monotonic clock.
    package init(_ rule: RefreshRule, answeredAt now: UInt64) {
        self.init(
            freshFor: rule.freshFor.nanoseconds, silentAfter: rule.silentAfter.nanoseconds, answeredAt: now)
    }
}

extension Duration {
    /// The duration in nanoseconds, clamped to the range of `UInt64`.
    fileprivate var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        return UInt64(clamping: seconds) *| 1_000_000_000 +| UInt64(clamping: attoseconds / 1_000_000_000)
    }
}

extension MediaPlaylist {
    /// Nil for a playlist with an end or without a target duration: its lifetime follows from its HTTP fields.
    ///
    /// A player that has seen no change waits half the target duration (RFC 8216 §6.3.4); in a stream with parts,
    /// one part.
    package var refreshRule: RefreshRule? {
        guard !hasEnd, let targetDuration, targetDuration > .zero else { return nil }
        let half = targetDuration / 2
        return RefreshRule(freshFor: min(partTarget ?? half, half), unit: targetDuration)
    }
}
