import CacheFill
import CachePolicy
import HTTPTransport
import Upstream

/// Limits and times that tests and measurements set; people have no reason to.
package struct ProxyTuning: Sendable {
    package var limits = TransportLimits()
    package var fill = FillSettings()
    package var upstream = UpstreamSettings()
    package var geometry = ChunkGeometry.standard

    package init() {}
}
