import CachePolicy
import HTTPModel

/// One rendition: its segments, and how their list continues (RFC 8216 §4.3.3).
package struct MediaPlaylist: Sendable {
    package enum PlaylistType: String, Sendable {
        /// Segments are appended, and none is removed.
        case event = "EVENT"
        /// Nothing changes.
        case vod = "VOD"
    }

    /// The greatest duration of a segment, rounded to seconds (RFC 8216 §4.3.3.1); nil if missing.
    package internal(set) var targetDuration: Duration?
    /// The greatest duration of a part (draft-pantos-hls-rfc8216bis §4.4.3.7); nil for a stream without parts.
    package internal(set) var partTarget: Duration?
    package internal(set) var type: PlaylistType?
    package internal(set) var hasEndTag = false
    /// The number of the first segment that is listed or skipped.
    package internal(set) var mediaSequence: Int64 = 0
    /// How many segments a delta update omits before the first listed one (draft-pantos-hls-rfc8216bis §4.4.5.2).
    package internal(set) var skippedSegments: Int64 = 0
    package internal(set) var segments: [Segment] = []
    /// The parts of the segment that is not complete yet.
    package internal(set) var trailingParts: [Part] = []
    package internal(set) var preloadHints: [PreloadHint] = []
    package internal(set) var renditionReports: [WrittenAddress] = []
    /// Each key once.
    package internal(set) var keys: [EncryptionKey] = []
    /// The sets of keys, by their indices, to which segments refer by index.
    package internal(set) var keySets: [[Int32]] = []
    /// The initialization sections, to which segments refer by index.
    package internal(set) var initializations: [InitializationSection] = []
    /// Of each, an index in `keySets`; -1 for none.
    var initializationKeySets: [Int32] = []

    /// Whether nothing will be added: a film, or a live stream that has ended.
    package var hasEnd: Bool { hasEndTag || type == .vod }

    package struct Segment: Sendable, Equatable {
        /// The reference in the text, with variables replaced.
        package let reference: String
        package let duration: Duration
        /// Bytes of the file, half-open; nil for all of it.
        package let range: Range<Int64>?
        package let isDiscontinuity: Bool
        package let isGap: Bool
        /// Indices in `keySets` and `initializations`; -1 for none. There are many segments.
        let keySet: Int32
        let initialization: Int32
        package let parts: [Part]
    }

    /// A piece of a segment, published before the segment is complete (draft-pantos-hls-rfc8216bis §4.4.4.9).
    package struct Part: Sendable, Equatable {
        package let address: WrittenAddress
        package let range: Range<Int64>?
        package let duration: Duration
        package let isIndependent: Bool
        package let isGap: Bool
    }

    /// What the server will publish next, and clients may already request (draft-pantos-hls-rfc8216bis §4.4.5.3).
    package struct PreloadHint: Sendable, Equatable {
        package enum Kind: String, Sendable {
            case part = "PART"
            case initialization = "MAP"
        }

        package let kind: Kind
        package let address: WrittenAddress?
        /// The offset of the first byte.
        package let start: Int64
        /// Bytes; nil for all up to the end.
        package let length: Int64?
    }
}
