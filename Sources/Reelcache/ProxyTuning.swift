import CacheFill
import CachePolicy
import Glibc
import HTTPTransport
import Upstream

/// Limits and times that are set by tests and benchmarks only.
package struct ProxyTuning: Sendable {
    package var limits = TransportLimits()
    package var fill = FillSettings()
    package var upstream = UpstreamSettings()
    package var geometry = ChunkGeometry.standard
    /// Whether the store evicts in advance, before a writer needs the room.
    package var evictsAhead = true
    /// Whether downloads run; otherwise orders are kept for the next process that runs them.
    package var downloads = true
    /// Whether other processes find the proxy, and its counters are part of the cache's history.
    package var isForOthers = true
    /// Whether subscribed feeds are checked when that is due; otherwise they are on demand only.
    package var checksFeeds = true
    /// The policy; nil for the one in the configuration.
    package var policy: ProxyPolicy?
    /// Whose words (flags or settings) clients get advice in.
    package var adviceWords = Advice.Words.settings
    /// The time in seconds since 1970, by which the administration decides what is old.
    package var now: @Sendable () -> Int64 = { Int64(time(nil)) }

    package init() {}
}
