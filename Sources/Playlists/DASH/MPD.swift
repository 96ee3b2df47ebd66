import CachePolicy
import HTTPModel

/// A media presentation description: a DASH playlist (ISO/IEC 23009-1 §5.3.1).
package struct MPD: Sendable {
    /// The URL that answered, against which addresses are resolved.
    package let base: OriginURL
    /// Whether it is live and will grow: `type="dynamic"`.
    package let isDynamic: Bool
    /// The minimum time for which an MPD is valid; nil if not stated.
    package let minimumUpdatePeriod: Duration?
    /// The time since 1970, UTC, of a live presentation's zero.
    package let availabilityStartTime: Duration?
    package let mediaPresentationDuration: Duration?
    /// How far back from now segments are available; nil: all from the start.
    package let timeShiftBufferDepth: Duration?
    package let maxSegmentDuration: Duration?
    /// The sources of the time for clients over HTTP (`UTCTiming`, ISO/IEC 23009-1 §5.8.4.11), which must not be answered
    /// from a cache.
    package let clocks: [OriginURL]
    /// The title in `ProgramInformation`.
    package let title: String?
    package let periods: [Period]
    let root: MPDElement
    /// Roughly the memory that it takes, in bytes.
    package internal(set) var weight = 0

    package struct Period: Sendable {
        /// The time since the presentation's zero; nil if not stated.
        package internal(set) var start: Duration?
        package internal(set) var duration: Duration?
        package let adaptationSets: [AdaptationSet]
        /// The URL of its description, if that is not in this text (`xlink:href`).
        package let remote: OriginURL?
    }

    package struct AdaptationSet: Sendable {
        package let kind: MediaKind
        /// BCP 47; nil if not stated.
        package let language: String?
        /// For fast seeking: one picture at a time.
        package let isTrickMode: Bool
        package let representations: [Representation]
        package let remote: OriginURL?
        /// The range of the element.
        let range: Range<Int>
    }

    /// One rendition, within one period.
    package struct Representation: Sendable {
        package let id: String
        /// Bits per second.
        package let bandwidth: Int64?
        package let resolution: Resolution?
        package let frameRate: Double?
        package let codecs: [String]
        package let mimeType: String?
        /// Whether it is encrypted for a DRM system (`ContentProtection`).
        package let isProtected: Bool
        /// Alternatives, in the order of the text; empty if none can be fetched over HTTP.
        package let baseURLs: [OriginURL]
        let information: SegmentInformation.Shared
        /// The range of the element.
        let range: Range<Int>
    }

    /// The kind of media in a rendition.
    package enum MediaKind: String, Sendable {
        case audio, video, text, image
    }

    /// A representation's place in an MPD.
    package struct RepresentationID: Sendable, Hashable {
        /// From 0, in the order of the text.
        package let period: Int
        package let adaptationSet: Int
        package let representation: Int

        package init(period: Int, adaptationSet: Int, representation: Int) {
            self.period = period
            self.adaptationSet = adaptationSet
            self.representation = representation
        }
    }

    /// All representations, in the order of the text.
    package var representations: [RepresentationID] {
        periods.indices.flatMap { period in
            periods[period].adaptationSets.indices.flatMap { set in
                periods[period].adaptationSets[set].representations.indices.map {
                    RepresentationID(period: period, adaptationSet: set, representation: $0)
                }
            }
        }
    }

    /// - Parameter id: an identifier of this MPD; the result is nil for another MPD's.
    package subscript(_ id: RepresentationID) -> Representation? {
        guard periods.indices.contains(id.period) else { return nil }
        let sets = periods[id.period].adaptationSets
        guard sets.indices.contains(id.adaptationSet) else { return nil }
        let representations = sets[id.adaptationSet].representations
        return representations.indices.contains(id.representation) ? representations[id.representation] : nil
    }

    /// Nil for a film, and for an MPD that declares itself static: their lifetimes follow from HTTP fields.
    ///
    /// Fresh for `minimumUpdatePeriod`. That may be zero although segments still arrive one by one; so silence is
    /// measured in segments, of two seconds unless the MPD states their duration.
    package var refreshRule: RefreshRule? {
        guard isDynamic, let minimumUpdatePeriod else { return nil }
        // Zero: each segment announces changes. Players reload once per segment.
        let segment = maxSegmentDuration ?? .seconds(2)
        return RefreshRule(
            freshFor: minimumUpdatePeriod > .zero ? minimumUpdatePeriod : segment / 2,
            unit: max(minimumUpdatePeriod, maxSegmentDuration ?? .seconds(2)))
    }
}
