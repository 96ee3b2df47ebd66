import CachePolicy
import HTTPModel

/// How long a playlist that goes on may be taken for the stream's present state.
///
///     answered ──── fresh ────┤──── asked again ────┤ silent: an error, rather than the same segments for ever
///              freshFor                              silentAfter
package struct RefreshRule: Sendable, Equatable {
    /// Since the origin answered with it. Zero: it is asked for each time.
    package let freshFor: Duration
    /// Since the origin answered last, with whatever: beyond it, a player that gets the same playlist again stalls
    /// without being told.
    package let silentAfter: Duration

    /// However long segments are said to be: a live playlist that is an hour old is of use to nobody.
    private static let longest: Duration = .seconds(3600)

    /// Both are held at an hour.
    /// - Parameter unit: the target duration, or what takes its place. Origins publish within one and a half of it (RFC
    ///   8216 §6.2.2).
    init(freshFor: Duration, unit: Duration) {
        self.freshFor = min(freshFor, Self.longest)
        silentAfter = min(unit, Self.longest) * 3 / 2
    }
}

extension LiveTiming {
    /// - Parameter now: when the origin answered with the playlist: nanoseconds of a clock that never goes back.
    package init(_ rule: RefreshRule, answeredAt now: UInt64) {
        self.init(
            freshFor: rule.freshFor.nanoseconds, silentAfter: rule.silentAfter.nanoseconds, answeredAt: now)
    }
}

extension Duration {
    /// 0 for one below zero; held at the greatest.
    fileprivate var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        return UInt64(clamping: seconds) *| 1_000_000_000 +| UInt64(clamping: attoseconds / 1_000_000_000)
    }
}

extension MediaPlaylist {
    /// Nil for one that has an end, or says no target duration: that lives by its HTTP fields.
    ///
    /// Half the target duration is what a player waits that has seen no change (RFC 8216 §6.3.4); with parts it is a
    /// part.
    package var refreshRule: RefreshRule? {
        guard !hasEnd, let targetDuration, targetDuration > .zero else { return nil }
        let half = targetDuration / 2
        return RefreshRule(freshFor: min(partTarget ?? half, half), unit: targetDuration)
    }
}

extension HLSPlaylist {
    /// Nil for what does not change: multivariant playlists, films, plain lists.
    package var refreshRule: RefreshRule? { media?.refreshRule }
}
