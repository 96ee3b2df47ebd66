import CachePolicy
import DiskCache
import HTTPModel
import Playlists

/// What is cached of a presentation: its stored playlists list its resources, and the index records which bytes of
/// them are cached.
///
/// Reading waits for the disk, and takes a while for long playlists: not for loops.
package struct PresentationContents: Sendable {
    package let document: PlaylistDocument
    package let renditions: [Rendition]

    package struct Rendition: Sendable {
        package let id: RenditionID
        /// Its media playlist, or the MPD.
        package let url: OriginURL
        package let report: CachedPresentation.Rendition
        /// Nil if its playlist is not cached.
        package let segments: (any SegmentSequence)?
        /// How many of them were examined, from the first on.
        package var examined = 0
        /// What is cached of each of these, if that is recorded.
        package var states = SegmentStates()

        /// Reports on those at these positions.
        package func segmentReports(_ positions: Range<Int>) -> [SegmentReport] {
            guard let segments else { return [] }
            return positions.compactMap { position in
                let segment = segments[position]
                guard let url = segment.url, !segment.isGap else { return nil }
                let state = states[position]
                return SegmentReport(
                    number: segment.number, url: url.absolute, range: segment.range.map(ByteSpan.init),
                    duration: segment.duration / .seconds(1), cached: state.cached, isCached: state.isWhole)
            }
        }

        fileprivate var listed: CachedPresentation.Rendition {
            var report = report
            if report.segmentList != nil { report.segmentList = segmentReports(0..<examined) }
            return report
        }
    }

    /// - Parameters:
    ///   - key: the cache key of the first playlist.
    ///   - policy: determines the cache keys of URLs.
    ///   - listsSegments: whether each segment is reported.
    ///   - mostSegments: how many are examined in all. A rendition with more is reported as incomplete, and with
    ///     too low counts.
    ///   - isShared: whether each rendition gets an equal share of these; otherwise the first ones may get all.
    /// - Returns: nil if that is not completely cached, or is not a readable playlist.
    package init?(
        of key: CacheKey, in store: CacheStore, _ policy: ProxyPolicy, listsSegments: Bool = false,
        mostSegments: Int = Self.mostSegments, isShared: Bool = false
    ) throws(StoreError) {
        guard let document = try PlaylistDocument.stored(key, in: store) else { return nil }
        self.document = document
        var survey = try RenditionSurvey(
            document, store, policy, listsSegments: listsSegments, mostSegments: mostSegments, isShared: isShared)
        renditions = try survey.renditions()
    }

    /// A template of a few bytes can stand for any number of segments: this many are 23 days at two seconds each.
    package static let mostSegments = 1_000_000

    /// The completely cached renditions, as a filter for a playlist; nil if it is not filtered: a media playlist
    /// is a single rendition.
    package var kept: PlaylistForm.Kept? {
        let complete = renditions.filter(\.report.isComplete)
        switch document.content {
        case .hls(let playlist):
            return playlist.multivariant == nil ? nil : .playlists(Set(complete.map(\.url)))
        case .dash(let mpd):
            let complete = Set(complete.compactMap(\.id.representation))
            return complete.isEmpty ? nil : .representations(mpd.filtered(by: complete))
        case .feed: return nil
        }
    }

    /// Whether it plays without its origin: something that can be played on its own is completely cached.
    package var isPlayable: Bool {
        switch (document.content, kept) {
        case (.hls(let playlist), .playlists(let kept)?):
            (try? playlist.multivariant?.edits(keeping: kept, within: WorkBudget(bytes: document.text.count))) != nil
        case (.dash(let mpd), _): mpd.plays(Set(renditions.filter(\.report.isComplete).compactMap(\.id.representation)))
        default: renditions.contains(where: \.report.isComplete)
        }
    }

    package var report: CachedPresentation { report(renditions.map(\.listed)) }

    private func report(_ renditions: [CachedPresentation.Rendition]) -> CachedPresentation {
        let kind =
            switch document.content {
            case .hls: "hls"
            case .dash: "dash"
            case .feed: "feed"
            }
        return CachedPresentation(
            kind: kind, title: document.title, isPlayable: isPlayable, isLive: document.isLive,
            renditions: renditions)
    }
}

extension MPD {
    /// The representations to keep if only some are cached: of each kind in each period the complete ones, or all
    /// if none is, as players can still get the parts of those that were played.
    fileprivate func filtered(by complete: Set<RepresentationID>) -> Set<RepresentationID> {
        var kept: Set<RepresentationID> = []
        for (_, alternatives) in Dictionary(grouping: representations, by: kind) {
            let there = alternatives.filter(complete.contains)
            kept.formUnion(there.isEmpty ? alternatives : there)
        }
        return kept
    }

    /// Whether something is cached of each kind of media, except text and images, in each period.
    fileprivate func plays(_ complete: Set<RepresentationID>) -> Bool {
        let needed = representations.filter { kind(of: $0).kind != .text && kind(of: $0).kind != .image }
        return !complete.isEmpty
            && Dictionary(grouping: needed, by: kind).values.allSatisfy { $0.contains(where: complete.contains) }
    }

    private struct KindInPeriod: Hashable {
        let period: Int
        let kind: MediaKind
    }

    private func kind(of id: RepresentationID) -> KindInPeriod {
        KindInPeriod(period: id.period, kind: periods[id.period].adaptationSets[id.adaptationSet].kind)
    }
}

extension PlaylistDocument {
    /// A completely cached playlist: read, or shared with those who have read it. Blocks.
    /// - Returns: nil if it is not complete, or cannot be read.
    package static func stored(
        _ key: CacheKey, in store: CacheStore, importing variables: [String: String]? = nil
    ) throws(StoreError) -> PlaylistDocument? {
        try store.checkOpen()
        let url = try? OriginURL(url: key.text)
        if let id = try store.completeGeneration(of: key), let known = store.readings[id] as? PlaylistDocument,
            known.key == key, known.url == url, known.fits(variables), !known.isFeed
        {
            return known
        }
        guard let stored = try store.bytes(of: key, limit: PlaylistLimits.bytes),
            let base = try? OriginURL(url: stored.finalURL),
            let text = try? ContentCoding.decoded(stored.bytes, stored.fields)
        else { return nil }
        let document = try? PlaylistDocument(
            text, key: key, url: url ?? base, base: base, generation: stored.generation, importing: variables,
            within: WorkBudget(bytes: text.count))
        if let document { store.readings[stored.generation] = document }
        return document
    }
}

extension PresentationContents {
    /// Examines the renditions of a presentation.
    private struct RenditionSurvey {
        private let document: PlaylistDocument
        private let store: CacheStore
        private let policy: ProxyPolicy
        private let listsSegments: Bool
        private var parts: CachedParts
        /// How many more segments may be examined.
        private var budget: Int
        /// Whether renditions share the budget evenly, and how many still have to get theirs.
        private let isShared: Bool
        private var renditionsLeft = 1

        /// How many times the index is queried for keys, initialization sections and files: each rendition has few.
        private static let mostLookUps = 10_000

        init(
            _ document: PlaylistDocument, _ store: CacheStore, _ policy: ProxyPolicy, listsSegments: Bool,
            mostSegments: Int, isShared: Bool
        ) throws(StoreError) {
            (self.document, self.store, self.policy, self.listsSegments) = (document, store, policy, listsSegments)
            (budget, self.isShared) = (mostSegments, isShared)
            parts = try CachedParts(of: document.key, store, policy, lookUps: Self.mostLookUps)
        }

        mutating func renditions() throws(StoreError) -> [PresentationContents.Rendition] {
            switch document.content {
            case .hls(let playlist):
                if let multivariant = playlist.multivariant { return try renditions(of: multivariant) }
                guard let segments = document.media else { return [] }
                var report = CachedPresentation.Rendition(name: "media", kind: "video")
                report.url = document.url.absolute
                return [try survey(segments, RenditionID(playlist: document.key), document.url, report)]
            case .dash(let mpd): return try renditions(of: mpd)
            case .feed: return []
            }
        }

        // MARK: HLS

        private mutating func renditions(of playlist: MultivariantPlaylist) throws(StoreError)
            -> [PresentationContents.Rendition]
        {
            let renditions = NamedRenditions.of(playlist, within: WorkBudget(bytes: document.text.count))
            renditionsLeft = renditions.count
            return try renditions.map { one throws(StoreError) in
                try rendition(at: one.url, one.name, kind: one.kind, bandwidth: one.bandwidth)
            }
        }

        private mutating func rendition(at url: OriginURL, _ name: String, kind: String, bandwidth: Int64? = nil)
            throws(StoreError) -> PresentationContents.Rendition
        {
            let key = policy.resolve(url).key
            var report = CachedPresentation.Rendition(name: name, kind: kind, bandwidth: bandwidth)
            report.url = url.absolute
            let media = try budget > 0 ? PlaylistDocument.stored(key, in: store, importing: document.variables) : nil
            defer { renditionsLeft -= 1 }
            return try survey(media?.media, RenditionID(playlist: key), url, report)
        }

        // MARK: DASH

        private mutating func renditions(of mpd: MPD) throws(StoreError) -> [PresentationContents.Rendition] {
            var found: [PresentationContents.Rendition] = []
            let renditions = NamedRenditions.of(mpd)
            renditionsLeft = renditions.count
            for (id, name) in renditions {
                defer { renditionsLeft -= 1 }
                guard let representation = mpd[id] else { continue }
                let set = mpd.periods[id.period].adaptationSets[id.adaptationSet]
                let kind = set.kind == .text ? "subtitles" : set.kind.rawValue
                var report = CachedPresentation.Rendition(
                    name: name, kind: kind, bandwidth: representation.bandwidth)
                report.isEncrypted = representation.isProtected
                let segments = try budget > 0 ? self.segments(of: id, in: mpd) : nil
                found.append(
                    try survey(segments, RenditionID(playlist: document.key, representation: id), document.url, report))
            }
            return found
        }

        /// - Returns: nil if nothing lists the segments, or the index that does is not cached.
        private func segments(of id: MPD.RepresentationID, in mpd: MPD) throws(StoreError) -> RepresentationSegments? {
            guard let place = mpd.segmentIndex(of: id), let range = place.range else {
                return try? mpd.segments(of: id)
            }
            let key = policy.resolve(place.url).key
            guard let stored = try store.bytes(of: key, range, limit: PlaylistLimits.bytes) else { return nil }
            // As it was fetched: as a whole with an index of another kind, as WebM has.
            return try? mpd.segments(of: id, index: try? SegmentIndexBox(stored.bytes, at: range.lowerBound))
        }

        // MARK: Both

        private mutating func survey(
            _ segments: (any SegmentSequence)?, _ id: RenditionID, _ url: OriginURL,
            _ report: CachedPresentation.Rendition
        ) throws(StoreError) -> PresentationContents.Rendition {
            var (report, examined, states) = (report, 0, PresentationContents.SegmentStates())
            if let segments { try survey(segments, &report, &examined, &states) }
            return .init(id: id, url: url, report: report, segments: segments, examined: examined, states: states)
        }

        private mutating func survey(
            _ segments: some SegmentSequence, _ report: inout CachedPresentation.Rendition, _ examined: inout Int,
            _ states: inout PresentationContents.SegmentStates
        ) throws(StoreError) {
            let share = isShared ? budget / max(1, renditionsLeft) : budget
            if listsSegments { (report.segmentList, report.initializations) = ([], []) }
            var (initializations, keys, isComplete) = (
                Set<InitializationSection>(), Set<WrittenAddress>(), !segments.isEmpty
            )
            for segment in segments.all {
                guard examined < share else {
                    isComplete = false
                    break
                }
                try store.checkOpen()
                if segment.isSurmised, let url = segment.url, try !parts.state(of: url, nil, isPart: true).isWhole {
                    break
                }
                examined += 1
                budget -= 1
                for key in segment.keys {
                    report.isEncrypted = true
                    // Keys of DRM systems come from elsewhere, and downloads do not fetch them.
                    guard let address = key.address, keys.insert(address).inserted else { continue }
                    if key.isFile, let url = key.url {
                        isComplete = try add(url, nil, to: &report) && isComplete
                    }
                }
                if let section = segment.initialization, initializations.insert(section).inserted, let url = section.url
                {
                    report.initializations?.append(
                        PlaceReport(url: url.absolute, range: section.range.map(ByteSpan.init)))
                    isComplete = try add(url, section.range, to: &report) && isComplete
                }
                var state = CachedParts.State()
                if let url = segment.url, !segment.isGap {
                    state = try parts.state(of: url, segment.range, isPart: true)
                    report.segments += 1
                    report.cachedBytes +|= state.cached
                    if state.isWhole { report.cachedSegments += 1 }
                    isComplete = state.isWhole && isComplete
                }
                if listsSegments { states.append(state) }
            }
            report.isComplete = isComplete
        }

        /// - Returns: whether all of it is cached.
        private mutating func add(
            _ url: OriginURL, _ range: Range<Int64>?, to report: inout CachedPresentation.Rendition
        )
            throws(StoreError) -> Bool
        {
            let state = try parts.state(of: url, range)
            report.cachedBytes +|= state.cached
            return state.isWhole
        }
    }
}

extension PresentationContents {
    /// The most presentations of a page that are described.
    private static let mostDescribed = 100

    /// Adds descriptions to those reports of a page that are presentations: the first hundred, until as many
    /// segments were examined as are allowed for a single one. A presentation that cannot be read keeps its
    /// report: the others are still listed. Blocks.
    package static func describe(_ reports: inout [CachedResource], in store: CacheStore, _ policy: ProxyPolicy) {
        var segments = 0
        for index in reports.indices.filter({ reports[$0].parts != nil }).prefix(mostDescribed) {
            guard segments < mostSegments, (try? store.checkOpen()) != nil else { return }
            _ = try? describe(&reports[index], in: store, policy)
            segments +|= reports[index].presentation?.segments ?? 0
        }
    }

    /// - Parameter spreads: whether the lists of segments are there at once; otherwise they are empty, and left to the
    ///   caller.
    /// - Returns: the renditions.
    @discardableResult
    package static func describe(
        _ report: inout CachedResource, in store: CacheStore, _ policy: ProxyPolicy, listsSegments: Bool = false,
        spreads: Bool = true
    ) throws(StoreError) -> [Rendition] {
        guard report.parts != nil || report.contentType.flatMap({ PlaylistKind(mediaType: $0) }) != nil else {
            return []
        }
        let contents = try PresentationContents(
            of: CacheKey(text: report.urlText), in: store, policy, listsSegments: listsSegments)
        guard let contents, !contents.renditions.isEmpty else { return [] }
        let presentation = spreads ? contents.report : contents.report(contents.renditions.map(\.report))
        (report.presentation, report.isComplete) = (presentation, presentation.isComplete)
        return contents.renditions
    }

    /// What is cached of each of many segments, in runs: of a rule that stands for a million, most are not.
    package struct SegmentStates: Sendable {
        /// Where each run ends.
        private var ends: [Int] = []
        private var states: [CachedParts.State] = []

        package var runCount: Int { ends.count }

        mutating func append(_ state: CachedParts.State) {
            let end = (ends.last ?? 0) + 1
            if states.last == state {
                ends[ends.count - 1] = end
            } else {
                ends.append(end)
                states.append(state)
            }
        }

        /// By binary search; nothing for one that was not examined.
        subscript(position: Int) -> CachedParts.State {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if ends[middle] <= position { low = middle + 1 } else { high = middle }
            }
            return low < states.count ? states[low] : CachedParts.State()
        }
    }
}
