import CachePolicy
import HTTPModel

/// One segment of a rendition, as it is asked for.
///
/// The words of this module, the same for both kinds:
/// - An **address** is a place in a playlist's text that names something else: a byte range and the reference that
///   stands there.
/// - A **rendition** is one sequence of segments that can be played by itself or beside others: an HLS media
///   playlist, a DASH representation.
/// - A **segment** is the unit that a player asks for: a file, or a range of bytes of one. Its **position** counts
///   from 0 within what is listed; its **number** is the one that the playlist gives it, and stays the same when a
///   live window moves on.
/// - An **initialization section** is what a decoder needs before a segment (`EXT-X-MAP`, `Initialization`).
/// - An **edit** replaces bytes of the original text. What no edit names stays byte for byte.
///
/// Nothing here reads a clock, a file or a socket: bytes come in, values come out.
package struct MediaSegment: Sendable, Equatable {
    /// What the playlist calls it: HLS's media sequence number, DASH's `$Number$`. Stays the same while a live window
    /// moves on.
    package let number: Int64
    /// Nil where it is in the playlist itself (`data:`), or nothing that is fetched over HTTP.
    package let url: OriginURL?
    /// Bytes of the file, half-open; nil for all of it.
    package let range: Range<Int64>?
    package let duration: Duration
    /// Under which it is encrypted, one for each key system; empty where it is not.
    package let keys: [EncryptionKey]
    /// What a decoder needs before it; nil where the segments need none.
    package let initialization: InitializationSection?
    /// Encoded in another way than the one before (RFC 8216 §4.3.2.3).
    package var isDiscontinuity = false
    /// Known to be missing at the origin, not to be asked for (draft-pantos-hls-rfc8216bis §4.4.4.7).
    package var isGap = false
}

/// What is needed before segments can be decoded: a file, or part of one.
package struct InitializationSection: Sendable, Hashable {
    /// Nil where it is in the playlist itself, or nothing that is fetched over HTTP.
    package let url: OriginURL?
    /// Bytes of the file, half-open; nil for all of it.
    package let range: Range<Int64>?
}

/// How segments are encrypted (RFC 8216 §4.3.2.4).
package struct EncryptionKey: Sendable, Hashable {
    /// `AES-128`, `SAMPLE-AES`, `SAMPLE-AES-CTR`, or what comes after these.
    package let method: String
    /// Where the key is; nil where it is nothing that is fetched over HTTP, such as `skd://`.
    package let url: OriginURL?
    /// As written, `0x...`; nil where the segment's number takes its place.
    package let initializationVector: String?
    /// `identity` where the file is the key itself; otherwise a DRM system's name.
    package let format: String

    package init(method: String, url: OriginURL?, initializationVector: String?, format: String) {
        (self.method, self.url, self.format) = (method, url, format)
        self.initializationVector = initializationVector
    }
}

/// The segments of one rendition, in order. They are made when asked for.
package protocol SegmentSequence: Sendable {
    var count: Int { get }
    /// - Parameter position: below `count`.
    subscript(position: Int) -> MediaSegment { get }
    /// The number of a segment, without making the rest of it.
    /// - Parameter position: below `count`.
    func number(at position: Int) -> Int64
    /// Where a request lies: the first segment at this URL that has the byte.
    /// - Parameter byte: the first that is asked for; nil for a request without a range.
    func position(of url: OriginURL, at byte: Int64?) -> Int?
    /// Of all segments' URLs.
    var hosts: Set<String> { get }
}

extension SegmentSequence {
    package var isEmpty: Bool { count == 0 }

    /// Where the segment with a number is; nil where it is not listed, or not any more.
    package func position(number: Int64) -> Int? {
        guard !isEmpty, let position = Int(exactly: number -| self.number(at: 0)), (0..<count).contains(position) else {
            return nil
        }
        return self.number(at: position) == number ? position : nil
    }

    /// The next segments after one, in order. Those that cannot be fetched, or are known to be missing, are passed
    /// over.
    /// - Parameters:
    ///   - limit: how many at most.
    ///   - position: a position of this sequence, or -1 to begin with the first.
    package func next(_ limit: Int, after position: Int) -> [MediaSegment] {
        var found: [MediaSegment] = []
        for place in max(0, position + 1)..<max(0, position + 1, count) where found.count < limit {
            let segment = self[place]
            if segment.url != nil, !segment.isGap { found.append(segment) }
        }
        return found
    }

    /// All of them, one after the other.
    package var all: some Sequence<MediaSegment> { (0..<count).lazy.map { self[$0] } }

    /// The initialization sections that the segments need, each once.
    package var initializations: [InitializationSection] {
        var known: Set<InitializationSection> = []
        return all.compactMap(\.initialization).filter { known.insert($0).inserted }
    }

    /// The keys that the segments need, each once.
    package var keys: [EncryptionKey] {
        var known: Set<EncryptionKey> = []
        return all.flatMap(\.keys).filter { known.insert($0).inserted }
    }
}

/// Which rendition an address belongs to, and where it is in it.
package struct RenditionIndex<ID: Sendable>: Sendable {
    package struct Place: Sendable {
        package let id: ID
        package let segments: any SegmentSequence
        /// Of the segment, in `segments`.
        package let position: Int
    }

    private let renditions: [(id: ID, segments: any SegmentSequence)]

    package init(_ renditions: [(id: ID, segments: any SegmentSequence)]) { self.renditions = renditions }

    /// - Parameters:
    ///   - url: what is asked for.
    ///   - byte: the first that is asked for; nil for a request without a range.
    package func place(of url: OriginURL, at byte: Int64? = nil) -> Place? {
        for (id, segments) in renditions {
            if let position = segments.position(of: url, at: byte) {
                return Place(id: id, segments: segments, position: position)
            }
        }
        return nil
    }
}
