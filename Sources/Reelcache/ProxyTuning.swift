import CacheFill
import CachePolicy
import Glibc
import HTTPTransport
import Upstream

/// Limits and times that tests and measurements set; people have no reason to.
package struct ProxyTuning: Sendable {
    package var limits = TransportLimits()
    package var fill = FillSettings()
    package var upstream = UpstreamSettings()
    package var geometry = ChunkGeometry.standard
    /// Whether the store evicts before somebody needs the room.
    package var evictsAhead = true
    /// Whether downloads are carried out; else orders are kept for the next process that does.
    package var downloads = true
    /// What is served, and how; nil for what the settings say.
    package var policy: ProxyPolicy?
    /// In whose words clients are told what helps.
    package var adviceWords = Advice.Words.settings
    /// The time in seconds since 1970, by which the administration tells what is old.
    package var now: @Sendable () -> Int64 = { Int64(time(nil)) }

    package init() {}
}
