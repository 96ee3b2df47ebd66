import CachePolicy
import HTTPModel

/// One rendition: its segments, and how the list of them goes on (RFC 8216 §4.3.3).
package struct MediaPlaylist: Sendable {
    package enum PlaylistType: String, Sendable {
        /// Segments are appended, and none goes.
        case event = "EVENT"
        /// Nothing changes.
        case vod = "VOD"
    }

    /// No segment is longer, rounded to seconds (RFC 8216 §4.3.3.1); nil where it is missing.
    package internal(set) var targetDuration: Duration?
    /// No part is longer (draft-pantos-hls-rfc8216bis §4.4.3.7); nil for a stream without parts.
    package internal(set) var partTarget: Duration?
    package internal(set) var type: PlaylistType?
    package internal(set) var hasEndTag = false
    /// Of the first segment that is listed or skipped.
    package internal(set) var mediaSequence: Int64 = 0
    package internal(set) var discontinuitySequence: Int64 = 0
    /// How many segments a delta update leaves out before the first one listed (draft-pantos-hls-rfc8216bis §4.4.5.2).
    package internal(set) var skippedSegments: Int64 = 0
    package internal(set) var hasIFramesOnly = false
    package internal(set) var serverControl: ServerControl?
    package internal(set) var segments: [Segment] = []
    /// Of the segment that is not complete yet.
    package internal(set) var trailingParts: [Part] = []
    package internal(set) var preloadHints: [PreloadHint] = []
    package internal(set) var renditionReports: [OriginURL] = []
    /// The sets of keys that segments name by their place here.
    package internal(set) var keySets: [[EncryptionKey]] = []
    /// The initialization sections that segments name by their place here.
    package internal(set) var initializations: [InitializationSection] = []

    /// Whether nothing will be added: a film, or a live stream that is over.
    package var hasEnd: Bool { hasEndTag || type == .vod }

    /// The length of what is listed.
    package var duration: Duration { segments.reduce(.zero) { $0 + $1.duration } }

    /// The number of the segment that follows the last one.
    package var nextSequence: Int64 { mediaSequence +| skippedSegments +| Int64(segments.count) }

    package struct Segment: Sendable, Equatable {
        /// As it stands in the text, variables replaced.
        package let reference: String
        package let duration: Duration
        /// Bytes of the file, half-open; nil for all of it.
        package let range: Range<Int64>?
        /// Places in `keySets` and `initializations`.
        let keySet: Int32?
        let initialization: Int32?
        package let isDiscontinuity: Bool
        package let isGap: Bool
        package let parts: [Part]
    }

    /// A piece of a segment, published before the whole is (draft-pantos-hls-rfc8216bis §4.4.4.9).
    package struct Part: Sendable, Equatable {
        package let url: OriginURL?
        package let range: Range<Int64>?
        package let duration: Duration
        package let isIndependent: Bool
        package let isGap: Bool
    }

    /// What the server expects to publish next, and may be asked for already (draft-pantos-hls-rfc8216bis §4.4.5.3).
    package struct PreloadHint: Sendable, Equatable {
        package enum Kind: String, Sendable {
            case part = "PART"
            case initialization = "MAP"
        }

        package let kind: Kind
        package let url: OriginURL?
        /// Of the first byte.
        package let start: Int64
        /// Bytes; nil up to the end.
        package let length: Int64?
    }

    /// What the server can do (draft-pantos-hls-rfc8216bis §4.4.3.8).
    package struct ServerControl: Sendable, Equatable {
        /// It understands `_HLS_msn` and `_HLS_part`, and answers when these are there.
        package let canBlockReload: Bool
        /// It understands `_HLS_skip`; nil where it does not.
        package let canSkipUntil: Duration?
        package let canSkipDateRanges: Bool
        /// How far from the end players stay.
        package let holdBack: Duration?
        package let partHoldBack: Duration?
    }
}
