import CachePolicy
import HTTPModel
import Playlists

/// One item that is fetched for a presentation: a file, or a range of one.
package struct PresentationItem: Sendable, Hashable {
    package enum Kind: String, Sendable {
        case playlist, key
        case initialization = "initialization section"
        case index = "segment index"
        case segment
    }

    package let kind: Kind
    package let url: OriginURL
    /// The byte range, half-open; nil for all of it.
    package internal(set) var range: Range<Int64>?
    /// How many segments it contains: several if they are adjacent in one file.
    package internal(set) var segments: Int64 = 0
    /// The place of its first segment among all segments, from 1.
    package internal(set) var number: Int64 = 0
    /// Whether an origin that does not have it has all the same the whole.
    var isSurmised = false
}

extension PresentationItem {
    /// A name for people, such as `segment 12 of 300`.
    /// - Parameter count: the number of all segments; nil if unknown.
    func name(of count: Int64?) -> String {
        guard kind == .segment else { return "the \(kind.rawValue)" }
        guard number > 0 else { return "a segment" }
        return "segment \(number)" + (count.map { " of \($0)" } ?? "")
    }
}

/// The items of a presentation to fetch, in the order in which they are played: the renditions side by side, and
/// before each segment the items needed to play it. Items are made one at a time, as there may be a hundred
/// thousand.
///
///     video  init ▸ 0 ▸     ▸ 1 ▸     ▸ 2 ▸
///     audio            init ▸ 0 ▸ 1 ▸     ▸ 2 ...
package struct PresentationItems: Sendable, Sequence, IteratorProtocol {
    /// A rendition, and the position in it.
    struct Track: Sendable {
        let segments: any SegmentSequence
        /// When the next segment is played, from the presentation's start.
        var time: Duration = .zero
        var position = 0

        init(_ segments: any SegmentSequence, from time: Duration = .zero) {
            (self.segments, self.time) = (segments, time)
        }
    }

    private var tracks: [Track]
    /// Items to return before the next segment is taken, in reverse order.
    private var pending: [PresentationItem]
    /// Keys and initialization sections that were already returned; each is returned once.
    private var known: Set<PresentationItem>
    private var segmentCount: Int64 = 0
    /// Adjacent segments of one file form one item up to this many bytes: longer ones would keep the other
    /// renditions waiting.
    private static let longestRun: Int64 = 4 << 20

    /// - Parameter before: the items that precede all others.
    init(_ tracks: [Track], before: [PresentationItem] = []) {
        self.tracks = tracks
        known = Set(before)
        pending = before.reversed()
    }

    package mutating func next() -> PresentationItem? {
        while true {
            if let item = pending.popLast() { return item }
            guard let track = earliest else { return nil }
            take(track)
        }
    }

    /// The rendition whose turn it is.
    private var earliest: Int? {
        tracks.indices.lazy.filter { tracks[$0].position < tracks[$0].segments.count }
            .min { (tracks[$0].time, $0) < (tracks[$1].time, $1) }
    }

    /// Takes the next segment of a rendition, and the items needed before it.
    private mutating func take(_ number: Int) {
        let segment = tracks[number].step()
        guard !segment.isGap, let url = segment.url, tracks[number].isFirstUse(of: segment) else { return }
        var item = PresentationItem(kind: .segment, url: url, range: segment.range, segments: 1)
        (item.number, item.isSurmised) = (segmentCount +| 1, segment.isSurmised)
        while let range = item.range, let more = tracks[number].following(segment, url, at: range.upperBound),
            let end = more.range?.upperBound, end -| range.lowerBound <= Self.longestRun
        {
            item.range = range.lowerBound..<end // no trap: the next one begins where this one ends
            item.segments += 1 // no trap: a number of segments
            _ = tracks[number].step()
        }
        segmentCount +|= item.segments
        pending = [item]
        for companion in segment.companions.reversed() where known.insert(companion).inserted {
            pending.append(companion)
        }
    }
}

extension PresentationItems.Track {
    fileprivate mutating func step() -> MediaSegment {
        let segment = segments[position]
        position += 1
        time += segment.duration
        return segment
    }

    /// The next segment, if it is adjacent in the same file and needs no other items.
    fileprivate func following(_ segment: MediaSegment, _ url: OriginURL, at offset: Int64) -> MediaSegment? {
        guard position < segments.count else { return nil }
        let next = segments[position]
        let continues = next.url == url && next.range?.lowerBound == offset && !next.isGap
        return continues && next.companions == segment.companions ? next : nil
    }

    /// Whether the segment just taken was not taken before: some playlists repeat segments.
    fileprivate func isFirstUse(of segment: MediaSegment) -> Bool {
        guard let url = segment.url,
            let first = try? segments.position(of: url, at: segment.range?.lowerBound, within: .ofMatch)
        else { return true }
        return first >= position - 1 || segments[first].range != segment.range
    }
}

extension MediaSegment {
    /// The other items needed to play it. Keys of DRM systems come from elsewhere.
    var companions: [PresentationItem] {
        let before = initialization?.keys.filter { $0.method == "AES-128" && !self.keys.contains($0) } ?? []
        let keys = (before + self.keys).filter(\.isFile).compactMap(\.url).map { PresentationItem(kind: .key, url: $0) }
        let section = initialization.flatMap { section in
            section.url.map { PresentationItem(kind: .initialization, url: $0, range: section.range) }
        }
        return keys + (section.map { [$0] } ?? [])
    }
}

extension EncryptionKey {
    /// Whether the URL is that of the key itself, and not of a licence server (RFC 8216 §4.3.2.4).
    var isFile: Bool { needsNoLicence && url != nil }

    /// Whether it is the key itself, in a file or in the playlist.
    var needsNoLicence: Bool { ASCII.equalIgnoringCase(format, "identity") && (url != nil || data != nil) }
}
