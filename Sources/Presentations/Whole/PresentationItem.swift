import CachePolicy
import HTTPModel
import Playlists

/// One thing that is fetched for a presentation: a file, or bytes of one.
package struct PresentationItem: Sendable, Hashable {
    package enum Kind: String, Sendable {
        case playlist, key
        case initialization = "initialization section"
        case index = "segment index"
        case segment
    }

    package let kind: Kind
    package let url: OriginURL
    /// Half-open; nil for all of it.
    package internal(set) var range: Range<Int64>?
    /// How many segments are in it: several where they follow one another in one file.
    package internal(set) var segments: Int64 = 0
    /// The place of its first segment among all, from 1.
    package internal(set) var number: Int64 = 0
}

extension PresentationItem {
    /// For people, such as `segment 12 of 300`.
    /// - Parameter count: of all segments.
    func name(of count: Int64?) -> String {
        guard kind == .segment else { return "the \(kind.rawValue)" }
        guard number > 0 else { return "a segment" }
        return "segment \(number)" + (count.map { " of \($0)" } ?? "")
    }
}

/// What of a presentation is to be fetched, in the order in which it is played: the renditions side by side, before each
/// segment what it takes to play it. Items are made one after the other, as there may be a hundred thousand.
///
///     video  init ▸ 0 ▸     ▸ 1 ▸     ▸ 2 ▸
///     audio            init ▸ 0 ▸ 1 ▸     ▸ 2 ...
package struct PresentationItems: Sendable, Sequence, IteratorProtocol {
    /// A rendition, and how far it is.
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
    /// What comes before the next segment.
    private var pending: [PresentationItem]
    /// Keys and initialization sections that were named, each once.
    private var known: Set<PresentationItem>
    private var segmentCount: Int64 = 0
    /// Segments in a row of one file are one item up to so many bytes: more would keep the other renditions waiting.
    private static let longestRun: Int64 = 4 << 20

    /// - Parameter before: what comes first of all.
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

    /// The next segment of a rendition, and what has to be there before it.
    private mutating func take(_ number: Int) {
        let segment = tracks[number].step()
        guard !segment.isGap, let url = segment.url, tracks[number].isFirstUse(of: segment) else { return }
        var item = PresentationItem(kind: .segment, url: url, range: segment.range, segments: 1)
        item.number = segmentCount +| 1
        while let range = item.range, let more = tracks[number].following(segment, url, at: range.upperBound),
            let end = more.range?.upperBound, end -| range.lowerBound <= Self.longestRun
        {
            item.range = range.lowerBound..<end // no trap: the next one begins where this ends
            item.segments += 1 // no trap: a count of segments
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

    /// The next segment, where it goes on in the same file and needs nothing else.
    fileprivate func following(_ segment: MediaSegment, _ url: OriginURL, at offset: Int64) -> MediaSegment? {
        guard position < segments.count else { return nil }
        let next = segments[position]
        let goesOn = next.url == url && next.range?.lowerBound == offset && !next.isGap
        return goesOn && next.companions == segment.companions ? next : nil
    }

    /// Whether the one just taken has not been named before: some play a segment again and again.
    fileprivate func isFirstUse(of segment: MediaSegment) -> Bool {
        guard let url = segment.url, let first = segments.position(of: url, at: segment.range?.lowerBound) else {
            return true
        }
        return first >= position - 1 || segments[first].range != segment.range
    }
}

extension MediaSegment {
    /// What it takes to play it, beside itself. Keys of DRM systems come from elsewhere.
    var companions: [PresentationItem] {
        let keys = keys.filter(\.isFile).compactMap(\.url).map { PresentationItem(kind: .key, url: $0) }
        let section = initialization.flatMap { section in
            section.url.map { PresentationItem(kind: .initialization, url: $0, range: section.range) }
        }
        return keys + (section.map { [$0] } ?? [])
    }
}

extension EncryptionKey {
    /// Whether the key itself is at its URL, and not a licence server (RFC 8216 §4.3.2.4).
    var isFile: Bool { ASCII.equalIgnoringCase(format, "identity") && url != nil }
}
