import CachePolicy
import HTTPModel

/// A media presentation description: a DASH playlist (ISO/IEC 23009-1 §5.3.1).
package struct MPD: Sendable {
    /// The URL that answered, against which addresses are resolved.
    package let base: OriginURL
    /// More will come: `type="dynamic"`.
    package let isDynamic: Bool
    /// At least so long an MPD holds; nil where it says nothing.
    package let minimumUpdatePeriod: Duration?
    /// Since 1970, UTC: the zero of a live presentation's time.
    package let availabilityStartTime: Duration?
    package let publishTime: Duration?
    package let mediaPresentationDuration: Duration?
    /// How far back from now segments are there; nil: all from the start.
    package let timeShiftBufferDepth: Duration?
    package let suggestedPresentationDelay: Duration?
    package let maxSegmentDuration: Duration?
    /// Where later versions of the MPD are, and what changes to them.
    package let locations: [OriginURL]
    package let patchLocations: [OriginURL]
    package let steering: OriginURL?
    package let utcTimings: [UTCTiming]
    /// Of `ProgramInformation`.
    package let title: String?
    package let periods: [Period]
    let root: MPDElement

    /// What tells clients the time (ISO/IEC 23009-1 §5.8.4.11): a URL must not be answered from a cache.
    package struct UTCTiming: Sendable, Equatable {
        package let scheme: String
        package let value: String
        /// Of the schemes that ask over HTTP.
        package let urls: [OriginURL]
    }

    package struct Period: Sendable {
        package let id: String?
        /// Since the presentation's zero; nil where nothing says it.
        package internal(set) var start: Duration?
        package internal(set) var duration: Duration?
        package let adaptationSets: [AdaptationSet]
        /// Where it is described, as it is not in this text (`xlink:href`).
        package let remote: OriginURL?
    }

    package struct AdaptationSet: Sendable {
        package let id: String?
        package let kind: MediaKind
        /// BCP 47; nil where it is not said.
        package let language: String?
        /// For fast seeking: one picture at a time.
        package let isTrickMode: Bool
        package let representations: [Representation]
        package let remote: OriginURL?
        /// Of the element.
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
        /// Encrypted, for a DRM system (`ContentProtection`).
        package let isProtected: Bool
        /// Alternatives, in the order of the text; empty where none can be fetched over HTTP.
        package let baseURLs: [OriginURL]
        let information: SegmentInformation
        /// Of the element.
        let range: Range<Int>
    }

    /// What a rendition is for.
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

    /// All that there is, in the order of the text.
    package var representations: [RepresentationID] {
        periods.indices.flatMap { period in
            periods[period].adaptationSets.indices.flatMap { set in
                periods[period].adaptationSets[set].representations.indices.map {
                    RepresentationID(period: period, adaptationSet: set, representation: $0)
                }
            }
        }
    }

    /// - Parameter id: of this MPD; nil for another's.
    package subscript(_ id: RepresentationID) -> Representation? {
        guard periods.indices.contains(id.period) else { return nil }
        let sets = periods[id.period].adaptationSets
        guard sets.indices.contains(id.adaptationSet) else { return nil }
        let representations = sets[id.adaptationSet].representations
        return representations.indices.contains(id.representation) ? representations[id.representation] : nil
    }

    /// Nil for a film, and where an MPD says that it does not change: those live by their HTTP fields.
    ///
    /// Fresh for `minimumUpdatePeriod`. That may be zero, and segments still come one by one; so silence is counted
    /// in segments, of two seconds where nothing says how long they are.
    package var refreshRule: RefreshRule? {
        guard isDynamic, let minimumUpdatePeriod else { return nil }
        // Zero: each segment says when it changes. Players come once a segment.
        let segment = maxSegmentDuration ?? .seconds(2)
        return RefreshRule(
            freshFor: minimumUpdatePeriod > .zero ? minimumUpdatePeriod : segment / 2,
            unit: max(minimumUpdatePeriod, maxSegmentDuration ?? .seconds(2)))
    }

    /// Whether nothing will be added.
    package var hasEnd: Bool { !isDynamic }
}
