import CachePolicy
import HTTPModel
import Playlists
import Synchronization

/// The place of a request in a rendition. One object, passed on by all that follow the request.
package final class SegmentPlace: Sendable {
    package let rendition: RenditionID
    package let segments: any SegmentSequence
    /// The position of the segment in `segments`.
    package let position: Int

    package init(rendition: RenditionID, segments: any SegmentSequence, position: Int) {
        (self.rendition, self.segments, self.position) = (rendition, segments, position)
    }

    package var segment: MediaSegment { segments[position] }
}

/// The presentation to which a resource belongs, according to recently served playlists.
package final class Membership: Sendable {
    /// The presentation's first playlist.
    package let whole: CacheKey
    /// Nil if it is not a segment but a playlist, an initialization section, a key or a piece of a segment.
    package let place: SegmentPlace?
    package let kind: Kind
    /// The playlist, if it is live.
    package let live: PlaylistDocument?
    /// The duration of a live segment that is not listed yet; nil for all else.
    let laterDuration: Duration?

    package enum Kind: Sendable {
        /// Segments, keys and initialization sections, which do not change.
        case media
        case playlist
        /// A source of the time for players, which must not be answered from a cache.
        case clock
    }

    init(whole: CacheKey, place: SegmentPlace?, kind: Kind, live: PlaylistDocument?, laterDuration: Duration?) {
        (self.whole, self.place, self.kind, self.live) = (whole, place, kind, live)
        self.laterDuration = laterDuration
    }

    /// The duration of the segment, listed or not yet; nil if it is not a segment.
    package var segmentDuration: Duration? { laterDuration ?? place?.segment.duration }
}

/// The recently served playlists, which tell which segment a request is for, and what follows it. From any thread.
package final class PlaylistShelf: Sendable {
    /// The feeds and lists of files, which have no segments.
    package let feeds = FeedShelf()
    let kept = PresentationContents.SharedReading()
    private let state = Mutex(State())
    /// While no streams are played, this spares requests the lock.
    private let isEmpty = Atomic<Bool>(true)
    /// How often something was put, or found.
    private let uses = Atomic<UInt64>(0)

    /// The most documents, and bytes that they take in memory.
    fileprivate static let (mostDocuments, mostBytes) = (64, 48 << 20)

    /// What a document names; made once, and shared by all that look something up in it.
    fileprivate final class Names: Sendable {
        let document: PlaylistDocument
        /// Of a media playlist.
        let media: MediaPlaylistSegments?
        /// Of an MPD, whose segments are computed when they are asked for.
        let index: RepresentationSegments.Index?
        /// Of HLS: initialization sections, keys and pieces of segments; and further playlists.
        let companions: NamedAddresses?
        let playlists: NamedAddresses?
        /// Of an MPD.
        let clocks: [OriginURL]
        /// The hosts of the URLs in it; `NamedHosts.any` for very many.
        let hosts: Set<String>
        let roles: Roles

        /// What the budget does not suffice for still plays, but nothing is fetched ahead for it.
        init(_ document: PlaylistDocument, within budget: WorkBudget) {
            self.document = document
            media = (try? document.media(within: budget)).flatMap(\.self)
            index = document.index(within: budget)
            if case .hls(let playlist) = document.content {
                companions = (try? playlist.companions(within: budget)).flatMap { $0.hosts.names.isEmpty ? nil : $0 }
                playlists = (try? playlist.playlists(within: budget)).flatMap { $0.hosts.names.isEmpty ? nil : $0 }
            } else {
                (companions, playlists) = (nil, nil)
            }
            clocks = document.clocks
            hosts = [companions?.hosts, playlists?.hosts, media?.hosts, index?.hosts].compactMap(\.self)
                .reduce(Set(clocks.map(\.host) + (media == nil ? [] : [document.base.host]))) { $0.union($1.names) }
            roles = Roles(document, within: budget)
        }

        /// Whether it names a playlist.
        func contain(_ playlist: OriginURL, within budget: WorkBudget) -> Bool {
            guard let playlists else { return false }
            return (try? playlists.contains(playlist.withoutDeliveryDirectives, within: budget)) == true
        }
    }

    /// Immutable, but for its last use: another one takes its place.
    fileprivate final class Entry: Sendable {
        typealias Indices = [MPD.RepresentationID: SegmentIndexBox?]

        let key: CacheKey
        let names: Names
        let whole: CacheKey
        /// The indexes of renditions that are one file each, once they were read; nil if there is no readable one.
        let indices: Indices
        let lastUse: Atomic<UInt64>

        init(_ names: Names, whole: CacheKey, _ indices: Indices = [:], lastUse: UInt64) {
            (self.names, self.whole, self.indices) = (names, whole, indices)
            self.lastUse = Atomic(lastUse)
            key = names.document.key
        }

        func with(whole: CacheKey? = nil, _ indices: Indices? = nil) -> Entry {
            Entry(
                names, whole: whole ?? self.whole, indices ?? self.indices, lastUse: lastUse.load(ordering: .relaxed))
        }

        /// The memory that it takes, in bytes.
        var weight: Int {
            let indexes = [
                names.index?.weight, names.media?.weight, names.companions?.weight, names.playlists?.weight,
            ].compactMap(\.self)
            return names.document.weight +| boxWeight +| names.roles.weight +| indexes.reduce(0, +|)
        }

        /// Of that, what the indexes of renditions that are one file each take.
        var boxWeight: Int {
            indices.values.reduce(0) {
                $0 +| ($1?.entries.count ?? 0) *| 2 *| MemoryLayout<SegmentIndexBox.Entry>.stride
            }
        }

        /// The segments of a rendition now.
        func segments(of rendition: RenditionID, at now: Duration) -> (any SegmentSequence)? {
            guard let id = rendition.representation else { return names.media }
            return names.document.segments(of: id, at: now, index: indices[id] ?? nil)
        }

        /// - Parameter address: the hashes of the URL.
        func membership(
            of url: OriginURL, at byte: Int64?, _ address: () -> RepresentationSegments.Index.Address,
            within budget: WorkBudget, now: () -> Duration
        ) throws(PlaylistError) -> Membership? {
            guard let index = names.index else { return try membershipOfMedia(of: url, at: byte, within: budget) }
            let candidates = try index.candidates(of: address(), at: byte, within: budget)
            guard !candidates.isEmpty else { return names.clocks.contains(url) ? membership(nil, kind: .clock) : nil }
            let now = now()
            var later: Duration?, isNamed = false
            for candidate in candidates {
                guard
                    let segments = names.document.segments(
                        of: candidate.id, at: now, index: indices[candidate.id] ?? nil)
                else { continue }
                let id = RenditionID(playlist: names.document.key, representation: candidate.id)
                if let position = try segments.position(of: url, at: byte, candidate.hint, within: budget) {
                    return membership(SegmentPlace(rendition: id, segments: segments, position: position))
                }
                if case .initialization = candidate.hint {
                    isNamed = isNamed || !segments.isEmpty && segments.initialization?.url == url
                } else if later == nil, names.document.isLive {
                    later = segments.laterDuration(of: url)
                }
            }
            return isNamed || later != nil ? membership(nil, later: isNamed ? nil : later) : nil
        }

        private func membershipOfMedia(of url: OriginURL, at byte: Int64?, within budget: WorkBudget)
            throws(PlaylistError) -> Membership?
        {
            if let media = names.media, let position = try media.position(of: url, at: byte, within: budget) {
                return membership(
                    SegmentPlace(
                        rendition: RenditionID(playlist: names.document.key), segments: media, position: position))
            }
            if let companions = names.companions, try companions.contains(url, within: budget) {
                return membership(nil)
            }
            if names.contain(url, within: budget) { return membership(nil, kind: .playlist) }
            let later = names.document.isLive ? names.media?.laterDuration(of: url) : nil
            return later.map { membership(nil, later: $0) }
        }

        private func membership(_ place: SegmentPlace?, kind: Membership.Kind = .media, later: Duration? = nil)
            -> Membership
        {
            Membership(
                whole: whole, place: place, kind: kind, live: names.document.isLive ? names.document : nil,
                laterDuration: later)
        }
    }

    fileprivate struct State {
        typealias Entries = [CacheKey: Entry]

        var entries: Entries = [:]
        /// Those with segments on a host, the newest last.
        var hosts: [String: [Entry]] = [:]
        /// Whether one of very many hosts was put.
        var hasOfAnyHost = false
        /// How often a document was put.
        var version: UInt64 = 0
    }

    package init() {}

    /// Whether a playlist was ever put on it. Costs one atomic load.
    package var isUsed: Bool { !isEmpty.load(ordering: .acquiring) }

    /// The memory that all take, in bytes.
    var weight: Int { state.withLock { $0.entries.values.reduce(0) { $0 +| $1.weight } } }

    /// Adds a document, replacing the one that its resource had before. Those that import variables from it are read
    /// again once the values have changed.
    /// - Parameters:
    ///   - known: the presentation that it is already known to belong to; nil if unknown.
    ///   - now: the time since 1970.
    ///   - budget: earned by the text. Nothing is put if nobody waits any more.
    /// - Returns: the presentation that it belongs to, and the playlists that turned out to belong to it: wholes
    ///   of their own until now.
    @discardableResult
    package func put(
        _ document: PlaylistDocument, partOf known: CacheKey? = nil, at now: Duration, within budget: WorkBudget
    ) -> (whole: CacheKey, joined: [CacheKey]) {
        // Outside the lock of all loops, as it takes a while: again if another was put meanwhile.
        var entry = Entry(Names(document, within: budget), whole: known ?? document.key, lastUse: use())
        while !budget.isCancelled {
            let (others, version) = state.withLock { (Array($0.entries.values), $0.version) }
            let parent =
                entry.names.playlists == nil ? Self.parent(of: document.url, in: others) : nil
            if let parent { entry = entry.with(whole: parent.key) }
            let budget = WorkBudget.ofMatch, variables = document.variables
            let outdated = others.filter { !$0.names.document.fits(variables) }.map(\.key)
            let named = others.filter {
                $0.key != document.key && ($0.whole == $0.key || outdated.contains($0.key))
                    && entry.names.contain($0.names.document.url, within: budget)
            }.map(\.key)
            let joined = state.withLock { state in
                state.put(entry, joining: named, without: outdated.filter(named.contains), after: version)
            }
            if let joined {
                isEmpty.store(false, ordering: .releasing)
                return (entry.whole, joined)
            }
        }
        return (entry.whole, [])
    }

    /// The text of a document for a client, which counts among what is kept.
    package func text(of document: PlaylistDocument, for form: PlaylistForm, within budget: WorkBudget)
        throws(PlaylistError) -> PlaylistText
    {
        let text = try document.text(for: form, within: budget)
        state.withLock { $0.shrink(keeping: document.key) }
        return text
    }

    /// The last document of a resource, if it is still on the shelf.
    package func document(_ key: CacheKey) -> PlaylistDocument? {
        state.withLock { $0.entries[key]?.names.document }
    }

    /// The multivariant playlist that names a media playlist. Looks into each document: not for loops.
    package func parent(of url: OriginURL) -> PlaylistDocument? {
        Self.parent(of: url, in: state.withLock { Array($0.entries.values) })?.names.document
    }

    private static func parent(of url: OriginURL, in entries: [Entry]) -> Entry? {
        let budget = WorkBudget.ofMatch
        return entries.filter { $0.names.contain(url, within: budget) }.max {
            $0.lastUse.load(ordering: .relaxed) < $1.lastUse.load(ordering: .relaxed)
        }
    }

    private func use() -> UInt64 { uses.add(1, ordering: .relaxed).newValue }

    /// The name of a rendition of a recently served playlist, as listings have it; `media` for one that stands alone.
    package func name(of rendition: RenditionID) -> String? {
        guard let entry = entry(rendition.playlist) else { return nil }
        if let id = rendition.representation {
            guard case .dash(let mpd) = entry.names.document.content else { return nil }
            return entry.names.roles.names[id] ?? RenditionName.of(id, in: mpd)
        }
        let url = entry.names.document.url.withoutDeliveryDirectives
        return self.entry(entry.whole)?.names.roles.entries[url.hashValue]?.name ?? "media"
    }

    /// Nil for a rendition that stands alone.
    func role(of rendition: RenditionID) -> RenditionRole? {
        if let id = rendition.representation {
            return .adaptationSet(rendition.playlist, period: id.period, set: id.adaptationSet)
        }
        guard let entry = entry(rendition.playlist) else { return nil }
        let url = entry.names.document.url.withoutDeliveryDirectives
        return self.entry(entry.whole)?.names.roles.entries[url.hashValue]?.role
    }

    /// The segments of a rendition, as last listed in its playlist.
    /// - Parameter now: the time since 1970.
    package func segments(of rendition: RenditionID, at now: Duration) -> (any SegmentSequence)? {
        // Outside the lock, as all that depends on a document.
        entry(rendition.playlist)?.segments(of: rendition, at: now)
    }

    private func entry(_ key: CacheKey) -> Entry? { state.withLock { $0.entries[key] } }

    /// The place of the segment index of a rendition that is one file, as long as its segments are unknown; nil
    /// for other renditions.
    package func missingIndex(of rendition: RenditionID) -> (url: OriginURL, range: Range<Int64>)? {
        guard let id = rendition.representation else { return nil }
        guard let entry = entry(rendition.playlist), entry.indices[id] == nil else { return nil }
        return entry.names.document.segmentIndex(of: id)
    }

    /// Takes the index of a rendition that was read: from now on, its segments are known.
    /// - Parameters:
    ///   - index: nil if there is none; it is not looked for again.
    package func learn(_ index: SegmentIndexBox?, of rendition: RenditionID) {
        guard let id = rendition.representation else { return }
        state.withLock { state in
            guard let known = state.entries[rendition.playlist] else { return }
            var entry = known.with(known.indices.merging([id: index]) { $1 })
            // A manifest may name any number of them.
            if entry.boxWeight > Self.mostBytes / 2 { entry = known.with(known.indices.merging([id: nil]) { $1 }) }
            state.replace(known, by: entry)
            state.shrink(keeping: rendition.playlist)
        }
    }

    /// The presentation to which a URL belongs; nil if no playlist names it.
    /// - Parameters:
    ///   - byte: the first requested byte; nil for a request without a range.
    ///   - budget: that of all documents on the URL's host.
    ///   - now: the time since 1970; called only if a playlist is on the URL's host.
    package func membership(
        of url: OriginURL, at byte: Int64?, within budget: @autoclosure () -> WorkBudget = .ofMatch,
        now: () -> Duration
    ) -> Membership? {
        guard isUsed else { return nil }
        // Outside the lock of all loops: only the documents on the host are looked up under it.
        let (entries, others) = state.withLock { state in
            (state.hosts[url.host] ?? [], state.hasOfAnyHost ? state.hosts[NamedHosts.any] ?? [] : [])
        }
        guard !entries.isEmpty || !others.isEmpty else { return nil }
        var hashes: RepresentationSegments.Index.Address?
        let budget = budget()
        let address = {
            let known = hashes ?? RepresentationSegments.Index.Address(url)
            hashes = known
            return known
        }
        // The newest first.
        for entries in [entries, others] {
            for entry in entries.reversed() {
                let membership = try? entry.membership(of: url, at: byte, address, within: budget, now: now)
                guard let found = membership.flatMap(\.self) else { continue }
                entry.lastUse.store(use(), ordering: .relaxed)
                return found
            }
        }
        return nil
    }
}

extension PlaylistShelf.State {
    /// - Parameters:
    ///   - named: the others that it names, of which those that stood alone join it.
    ///   - outdated: those that leave the shelf.
    ///   - known: the version in which these were found.
    /// - Returns: those that joined; nil if another was put since, and nothing has changed.
    fileprivate mutating func put(
        _ entry: PlaylistShelf.Entry, joining named: [CacheKey], without outdated: [CacheKey], after known: UInt64
    ) -> [CacheKey]? {
        guard version == known else { return nil }
        version &+= 1
        let key = entry.key
        remove(key)
        entries[key] = entry
        for host in entry.names.hosts { hosts[host, default: []].append(entry) }
        if entry.names.hosts.contains(NamedHosts.any) { hasOfAnyHost = true }
        let joined = named.compactMap { entries[$0] }.filter { $0.whole == $0.key }
        for each in joined { replace(each, by: each.with(whole: key)) }
        for each in outdated { remove(each) }
        shrink(keeping: key)
        return joined.map(\.key)
    }

    private mutating func remove(_ key: CacheKey) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        for host in entry.names.hosts {
            hosts[host]?.removeAll { $0 === entry }
            if hosts[host]?.isEmpty == true { hosts[host] = nil }
        }
    }

    fileprivate mutating func replace(_ entry: PlaylistShelf.Entry, by newer: PlaylistShelf.Entry) {
        entries[newer.key] = newer
        for host in newer.names.hosts {
            if let index = hosts[host]?.firstIndex(where: { $0 === entry }) { hosts[host]?[index] = newer }
        }
    }

    fileprivate mutating func shrink(keeping key: CacheKey) {
        var bytes = entries.values.reduce(0) { $0 +| $1.weight }
        while entries.count > PlaylistShelf.mostDocuments || bytes > PlaylistShelf.mostBytes {
            let oldest = entries.values.filter { $0.key != key }.min {
                $0.lastUse.load(ordering: .relaxed) < $1.lastUse.load(ordering: .relaxed)
            }
            guard let oldest else { return }
            bytes -= oldest.weight
            remove(oldest.key)
        }
    }
}

extension OriginURL {
    /// The URL without the parameters that request one state of a live playlist (draft-pantos-hls-rfc8216bis
    /// §6.2.5): it is the same playlist.
    package var withoutDeliveryDirectives: OriginURL {
        guard pathAndQuery.utf8.contains(UInt8(ascii: "?")), pathAndQuery.contains(IgnoredQuery.deliveryDirective)
        else { return self }
        let parts = pathAndQuery.split(separator: "?", maxSplits: 1)
        guard let path = parts.first, let query = parts.dropFirst().first else { return self }
        let kept = query.split(separator: "&").filter { !$0.hasPrefix(IgnoredQuery.deliveryDirective) }
        let text = kept.isEmpty ? String(path) : path + "?" + kept.joined(separator: "&")
        return (try? OriginURL(url: scheme.rawValue + "://" + authority + text)) ?? self
    }
}
