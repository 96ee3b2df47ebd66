import CachePolicy
import HTTPModel

/// One segment of a rendition, as a player requests it.
///
/// The terms of this module, the same for both formats:
/// - An **address** is a place in a playlist's text that refers to something else: a byte range and the reference
///   in it.
/// - A **rendition** is one sequence of segments that plays alone or beside others: an HLS media playlist, a DASH
///   representation.
/// - A **segment** is the unit that a player requests: a file, or a byte range of one. Its **position** counts from
///   0 among the listed segments; its **number** is assigned by the playlist, and stays the same as a live window
///   advances.
/// - An **initialization section** is what a decoder needs before a segment (`EXT-X-MAP`, `Initialization`).
/// - An **edit** replaces bytes of the original text. All other bytes stay as they are.
///
/// Nothing in this module reads a clock, a file or a socket: bytes come in, values come out.
package struct MediaSegment: Sendable, Equatable {
    /// The number that the playlist assigns: HLS's media sequence number, DASH's `$Number$`. It stays the same as a
    /// live window advances.
    package let number: Int64
    /// Nil if the segment is inside the playlist itself (`data:`), or is not fetched over HTTP.
    package let url: OriginURL?
    /// Bytes of the file, half-open; nil for all of it.
    package let range: Range<Int64>?
    package let duration: Duration
    /// The keys that encrypt it, one for each key system; empty if it is not encrypted.
    package let keys: [EncryptionKey]
    /// What a decoder needs before the segment; nil if it needs nothing.
    package let initialization: InitializationSection?
    /// Whether its encoding differs from that of the previous segment (RFC 8216 §4.3.2.3).
    package var isDiscontinuity = false
    /// Whether it is known to be missing at the origin, and must not be requested (draft-pantos-hls-rfc8216bis
    /// §4.4.4.7).
    package var isGap = false
    /// Whether nothing but a duration says that there is this one, at the end: a duration that is a little longer, as
    /// that of another rendition is or a rounded one, says so, too.
    package var isSurmised = false
}

/// An address as it is written. It is resolved when it is asked for: resolved ones below a long base would take its
/// length each.
package struct WrittenAddress: Sendable, Hashable {
    /// In the form of `Reference.text`; empty for the base itself.
    let reference: String
    let base: OriginURL

    /// Roughly that of its URL, in bytes.
    package var length: Int { base.pathAndQuery.utf8.count &+ reference.utf8.count }

    /// Nil if it is inside the playlist itself (`data:`), or is not fetched over HTTP.
    package var url: OriginURL? { reference.isEmpty ? base : base.resolving(reference) }

    package func hash(into hasher: inout Hasher) { hasher.combine(reference) }
}

extension WrittenAddress {
    /// What has an address, or may have one.
    package protocol Holder {
        var address: WrittenAddress? { get }
    }
}

extension WrittenAddress.Holder {
    /// Nil if it has no address, or is inside the playlist itself (`data:`), or is not fetched over HTTP (`skd://`).
    package var url: OriginURL? { address.flatMap(\.url) }
}

/// The data that a decoder needs before segments: a file, or part of one.
package struct InitializationSection: Sendable, Hashable, WrittenAddress.Holder {
    /// Nil if it is stated without one.
    package let address: WrittenAddress?
    /// Bytes of the file, half-open; nil for all of it.
    package let range: Range<Int64>?
    /// The keys that encrypt it: those that were stated before it (RFC 8216 §4.3.2.4).
    package var keys: [EncryptionKey] = []
}

/// How segments are encrypted (RFC 8216 §4.3.2.4).
package struct EncryptionKey: Sendable, Hashable, WrittenAddress.Holder {
    /// `AES-128`, `SAMPLE-AES`, `SAMPLE-AES-CTR`, or a future method.
    package let method: String
    package let address: WrittenAddress?
    /// As written, `0x...`; nil if the segment's number replaces it.
    package var initializationVector: String?
    /// `identity` if the file is the key itself; otherwise the name of a DRM system.
    package let format: String

    /// The `data:` URL that contains the key; nil if the key is elsewhere.
    package var data: String? {
        guard let text = address?.reference, ASCII.begins(text, with: "data:") else { return nil }
        return text.contains("\"") ? nil : text
    }
}

/// The segments of one rendition, in order. They are created on demand.
package protocol SegmentSequence: Sendable {
    var count: Int { get }
    /// - Parameter position: below `count`.
    subscript(position: Int) -> MediaSegment { get }
    /// The number of a segment, without creating the segment.
    /// - Parameter position: below `count`.
    func number(at position: Int) -> Int64
    /// The first position from which on all segments last at most this long together; `count` if the last one lasts
    /// longer.
    func position(within duration: Duration, _ budget: WorkBudget) throws(PlaylistError) -> Int
    /// The segment to which a request belongs: the first one at this URL that contains the byte.
    /// - Parameter byte: the first requested byte; nil for a request without a range.
    /// - Throws: if the budget is spent.
    func position(of url: OriginURL, at byte: Int64?, within budget: WorkBudget) throws(PlaylistError) -> Int?
    /// The duration of the segment that will have this URL, if it is one after those that are listed.
    func laterDuration(of url: OriginURL) -> Duration?
}

extension SegmentSequence {
    package var isEmpty: Bool { count == 0 }

    package func laterDuration(of url: OriginURL) -> Duration? { nil }

    package func position(within duration: Duration, _ budget: WorkBudget) throws(PlaylistError) -> Int {
        try position(within: duration, budget) { self[$0].duration }
    }

    /// Looks at the segments one by one, from the end.
    func position(within duration: Duration, _ budget: WorkBudget, _ length: (Int) -> Duration)
        throws(PlaylistError) -> Int
    {
        var rest = duration
        for position in (0..<count).reversed() {
            try budget.take()
            rest -= length(position)
            if rest < .zero { return position + 1 } // no trap: below the count
        }
        return 0
    }

    /// The position of the segment with a number; nil if it is not listed (any longer).
    package func position(number: Int64) -> Int? {
        guard !isEmpty, let position = Int(exactly: number -| self.number(at: 0)), (0..<count).contains(position) else {
            return nil
        }
        return self.number(at: position) == number ? position : nil
    }

    /// The number of a segment of another state of this playlist: another one than there, where numbers count from the
    /// beginning of what is listed, as in DASH without `startNumber` (ISO/IEC 23009-1 §5.3.9.2).
    /// - Throws: if the budget is spent.
    package func number(of segment: MediaSegment, within budget: WorkBudget) throws(PlaylistError) -> Int64 {
        guard let place = position(number: segment.number), let url = segment.url else { return segment.number }
        let same = self[place]
        guard same.url != url || same.range != segment.range,
            let position = try position(of: url, at: segment.range?.lowerBound, within: budget)
        else { return segment.number }
        return number(at: position)
    }

    /// All segments, in order.
    package var all: some Sequence<MediaSegment> { (0..<count).lazy.map { self[$0] } }

    /// The initialization sections that the segments need, without duplicates.
    package var initializations: [InitializationSection] {
        var known: Set<InitializationSection> = []
        return all.compactMap(\.initialization).filter { known.insert($0).inserted }
    }

    /// The keys that the segments need, without duplicates.
    package var keys: [EncryptionKey] {
        var known: Set<EncryptionKey> = []
        return all.flatMap(\.keys).filter { known.insert($0).inserted }
    }
}
