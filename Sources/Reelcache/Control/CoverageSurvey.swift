import Activity
import CachePolicy
import DiskCache
import HTTPModel
import Playlists
import Presentations

/// Puts together what the index, the fetches and the plays tell of one resource.
struct CoverageSurvey: Sendable {
    let key: CacheKey
    let coverage: CacheCoverage
    let look: LiveState.Look
    let policy: ProxyPolicy
    let window: CoverageStrip.Window

    /// - Parameter renditions: of a presentation; none if it is a file.
    func report(_ renditions: [CachedRendition]) -> CoverageReport {
        CoverageReport(url: key.text, strips: renditions.isEmpty ? [file] : renditions.map(strip))
    }

    private var plays: [PlayReport] { look.report.plays.filter { $0.urlText == key.text } }

    // MARK: A file

    private var file: CoverageStrip {
        CoverageStrip(
            unit: .bytes, present: coverage.ranges, length: coverage.length, chunkSize: coverage.chunkSize, in: window,
            .init(
                arriving: look.fetches.filter { $0.key == key }.map {
                    .init(transfer: $0.id, from: $0.from, at: $0.arrived, to: $0.to)
                },
                readers: plays.flatMap { play in
                    play.positions.map { .init(play: play.id, player: play.player, at: $0) }
                }))
    }

    // MARK: A presentation

    /// Whether it may be a presentation.
    var isPlaylist: Bool {
        coverage.type.flatMap { PlaylistKind(mediaType: $0) } != nil
            || (try? OriginURL(url: key.text)).map(StrayPage.isPlaylist) == true
    }

    /// Empty if it is not a presentation, or its first playlist is not cached. Blocks.
    func cachedRenditions(in store: CacheStore) throws -> [CachedRendition] {
        try PresentationContents(
            of: key, in: store, policy, listsSegments: true, mostSegments: CachedRendition.mostSegments,
            isShared: true
        )?.renditions.map { CachedRendition($0) } ?? []
    }

    private func strip(_ rendition: CachedRendition) -> CoverageStrip {
        CoverageStrip(
            name: rendition.name, segments: rendition.percentages, unexamined: rendition.unexamined, in: window,
            .init(
                arriving: look.fetches.compactMap { arrival($0, in: rendition.segments) },
                readers: plays.flatMap { play in
                    play.segments.filter { $0.rendition == rendition.name }.map {
                        .init(play: play.id, player: play.player, at: Int64($0.number - 1))
                    }
                }))
    }

    /// The segment that a fetch brings.
    private func arrival(_ fetch: FetchSample, in segments: (any SegmentSequence)?) -> CoverageStrip.Arrival? {
        guard let segments, fetch.whole == key, let url = try? OriginURL(url: fetch.url),
            let position = [fetch.from, nil].lazy.compactMap({
                (try? segments.position(of: url, at: $0, within: .ofMatch)).flatMap(\.self)
            }).first
        else { return nil }
        let place = Int64(position)
        return .init(transfer: fetch.id, from: place, at: place, to: place +| 1)
    }
}

/// A rendition as far as it is cached.
struct CachedRendition: Sendable {
    let name: String
    /// nil if its playlist is not cached.
    let segments: (any SegmentSequence)?
    /// How much of each segment that was examined is cached, 0 to 100.
    let percentages: [UInt8]
    /// How many more segments there are.
    let unexamined: Int

    /// How many segments of all renditions are examined: each rendition gets its share.
    static let mostSegments = 100_000

    init(_ rendition: PresentationContents.Rendition) {
        name = PlayReport.Segment.name(rendition.report.name)
        segments = rendition.segments
        percentages = Self.percentages(rendition)
        unexamined = max(0, (segments?.count ?? 0) - percentages.count)
    }

    private static func percentages(_ rendition: PresentationContents.Rendition) -> [UInt8] {
        guard let segments = rendition.segments else { return [] }
        var cached = [UInt8](repeating: 0, count: min(segments.count, rendition.examined))
        for position in cached.indices {
            cached[position] = rendition.segmentReports(position..<position + 1).first?.percent ?? 0
        }
        return cached
    }
}

extension SegmentReport {
    /// 0 if nothing of it is cached, 100 if all of it is; 50 in between where its length is not known.
    fileprivate var percent: UInt8 {
        if isCached { return 100 }
        guard cached > 0 else { return 0 }
        guard let range, range.count > 0 else { return 50 }
        return UInt8(min(99, max(1, Int(saturating: Double(cached) / Double(range.count) * 100)))) // no trap: 1 to 99
    }
}
