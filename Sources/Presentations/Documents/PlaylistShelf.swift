import CachePolicy
import Playlists
import Synchronization

/// The place of a request in a rendition.
package struct SegmentPlace: Sendable {
    package let rendition: RenditionID
    package let segments: any SegmentSequence
    /// The position of the segment in `segments`.
    package let position: Int

    package var segment: MediaSegment { segments[position] }
}

/// The presentation to which a resource belongs, according to recently served playlists.
package struct Membership: Sendable {
    /// The presentation's first playlist.
    package let whole: CacheKey
    /// Nil if it is not a segment but a playlist, an initialization section, a key or a piece of a segment.
    package let place: SegmentPlace?
    /// Whether it is a playlist itself: those change, while segments, keys and initialization sections do not.
    package let isPlaylist: Bool
    /// The playlist, if it is live.
    package let live: PlaylistDocument?
    /// The duration of a live segment that is not listed yet; nil for all else.
    let laterDuration: Duration?

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

    /// The most documents, and bytes of their texts: parsed, each takes about four times as many.
    fileprivate static let (mostDocuments, mostBytes) = (64, 32 << 20)

    fileprivate struct Entry {
        let document: PlaylistDocument
        var whole: CacheKey
        var renditions: [(id: RenditionID, segments: any SegmentSequence)]
        let companions: Set<OriginURL>
        let playlists: Set<OriginURL>
        /// The hosts of the URLs in it.
        let hosts: Set<String>
        /// The indexes of renditions that are one file each, once they were read; nil if there is no readable one.
        var indices: [MPD.RepresentationID: SegmentIndexBox?] = [:]
        /// When its segments were counted, since 1970.
        var countedAt: Duration
        var lastUse: UInt64

        /// The duration of a segment of a live rendition that is not listed yet.
        func laterDuration(of url: OriginURL) -> Duration? {
            document.isLive ? renditions.lazy.compactMap { $0.segments.laterDuration(of: url) }.first : nil
        }

        func place(of url: OriginURL, at byte: Int64?) -> SegmentPlace? {
            for (id, segments) in renditions {
                guard let position = segments.position(of: url, at: byte) else { continue }
                return SegmentPlace(rendition: id, segments: segments, position: position)
            }
            return nil
        }

        /// Whether a URL belongs to something other than a segment.
        func names(_ url: OriginURL) -> Bool {
            companions.contains(url) || playlists.contains(url.withoutDeliveryDirectives)
        }
    }

    fileprivate struct State {
        typealias Entries = [CacheKey: Entry]

        var entries: Entries = [:]
        /// The playlists with segments on a host.
        var keys: [String: [CacheKey]] = [:]
        var uses: UInt64 = 0
    }

    package init() {}

    /// Adds a document, replacing the one that its resource had before.
    /// - Parameters:
    ///   - known: the presentation that it is already known to belong to; nil if unknown.
    ///   - now: the time since 1970.
    /// - Returns: the presentation that it belongs to, and the playlists that turned out to belong to it: wholes
    ///   of their own until now.
    @discardableResult
    package func put(_ document: PlaylistDocument, partOf known: CacheKey? = nil, at now: Duration) -> (
        whole: CacheKey, joined: [CacheKey]
    ) {
        // Outside the lock: a long playlist takes a while.
        let renditions = document.renditions(at: now)
        let entry = Entry(
            document: document, whole: known ?? document.key, renditions: renditions,
            companions: document.companions(of: renditions), playlists: Set(document.playlists),
            hosts: document.segmentHosts(renditions), countedAt: now, lastUse: 0)
        let result = state.withLock { $0.put(entry) }
        isEmpty.store(false, ordering: .releasing)
        return result
    }

    /// The last document of a resource, if it is still on the shelf.
    package func document(_ key: CacheKey) -> PlaylistDocument? {
        state.withLock { $0.entries[key]?.document }
    }

    /// The multivariant playlist that names a media playlist.
    package func parent(of url: OriginURL) -> PlaylistDocument? { state.withLock { $0.parent(of: url)?.document } }

    /// The segments of a rendition, as last listed in its playlist.
    /// - Parameter now: the time since 1970.
    package func segments(of rendition: RenditionID, at now: Duration) -> (any SegmentSequence)? {
        state.withLock { state in
            guard let place = state.entries.index(forKey: rendition.playlist) else { return nil }
            state.count(at: place, now)
            return state.entries.values[place].renditions.first { $0.id == rendition }?.segments
        }
    }

    /// The place of the segment index of a rendition that is one file, as long as its segments are unknown; nil
    /// for other renditions.
    package func missingIndex(of rendition: RenditionID) -> (url: OriginURL, range: Range<Int64>)? {
        guard let id = rendition.representation else { return nil }
        return state.withLock { state in
            guard let entry = state.entries[rendition.playlist], entry.indices[id] == nil else { return nil }
            return entry.document.segmentIndex(of: id)
        }
    }

    /// Takes the index of a rendition that was read: from now on, its segments are known.
    /// - Parameters:
    ///   - index: nil if there is none; it is not looked for again.
    ///   - now: the time since 1970.
    package func learn(_ index: SegmentIndexBox?, of rendition: RenditionID, at now: Duration) {
        guard let id = rendition.representation, let document = document(rendition.playlist) else { return }
        // Outside the lock: there may be many.
        let segments = index.flatMap { document.segments(of: id, at: now, index: $0) }
        state.withLock { state in
            guard let entry = state.entries[rendition.playlist], entry.document === document else { return }
            state.entries[rendition.playlist]?.indices[id] = .some(index)
            guard let segments, let place = entry.renditions.firstIndex(where: { $0.id == rendition }) else { return }
            state.entries[rendition.playlist]?.renditions[place].segments = segments
        }
    }

    /// The presentation to which a URL belongs; nil if no playlist names it. Costs one atomic load while the shelf
    /// is empty.
    /// - Parameters:
    ///   - byte: the first requested byte; nil for a request without a range.
    ///   - now: the time since 1970; called only if a playlist is on the URL's host.
    package func membership(of url: OriginURL, at byte: Int64?, now: () -> Duration) -> Membership? {
        guard !isEmpty.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.membership(of: url, at: byte, now: now) }
    }
}

extension PlaylistShelf.State {
    fileprivate mutating func put(_ entry: PlaylistShelf.Entry) -> (CacheKey, [CacheKey]) {
        var entry = entry
        uses &+= 1
        entry.lastUse = uses
        let document = entry.document
        remove(document.key)
        if let parent = parent(of: document.url), document.playlists.isEmpty { entry.whole = parent.document.key }
        entries[document.key] = entry
        for host in entry.hosts { keys[host, default: []].append(document.key) }
        let joined = entries.filter { $0.value.whole == $0.key && $0.key != document.key }
            .filter { entry.playlists.contains($0.value.document.url.withoutDeliveryDirectives) }.map(\.key)
        for key in joined { entries[key]?.whole = document.key }
        shrink(keeping: document.key)
        return (entry.whole, joined)
    }

    private mutating func remove(_ key: CacheKey) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        for host in entry.hosts { keys[host]?.removeAll { $0 == key } }
        for host in entry.hosts where keys[host]?.isEmpty == true { keys[host] = nil }
    }

    private mutating func shrink(keeping key: CacheKey) {
        var bytes = entries.values.reduce(0) { $0 + $1.document.text.count }
        while entries.count > PlaylistShelf.mostDocuments || bytes > PlaylistShelf.mostBytes {
            let oldest = entries.filter { $0.key != key }.min { $0.value.lastUse < $1.value.lastUse }
            guard let oldest else { return }
            bytes -= oldest.value.document.text.count
            remove(oldest.key)
        }
    }

    fileprivate func parent(of url: OriginURL) -> PlaylistShelf.Entry? {
        let url = url.withoutDeliveryDirectives
        return entries.values.filter { $0.playlists.contains(url) }.max { $0.lastUse < $1.lastUse }
    }

    /// Lists the segments of a dynamic MPD again: those that follow from a rule change over time.
    fileprivate mutating func count(at place: Entries.Index, _ now: Duration) {
        let entry = entries.values[place]
        guard case .dash = entry.document.content, entry.document.isLive,
            now - entry.countedAt >= .milliseconds(500) || now < entry.countedAt
        else { return }
        entries.values[place].renditions = entry.document.renditions(at: now, entry.indices)
        entries.values[place].countedAt = now
    }

    fileprivate mutating func membership(of url: OriginURL, at byte: Int64?, now: () -> Duration) -> Membership? {
        guard let found = keys[url.host] else { return nil }
        for key in found.reversed() {
            guard let known = entries.index(forKey: key) else { continue }
            count(at: known, now())
            let entry = entries.values[known]
            let place = entry.place(of: url, at: byte)
            let isNamed = place == nil && entry.names(url)
            let later = place == nil && !isNamed ? entry.laterDuration(of: url) : nil
            guard place != nil || isNamed || later != nil else { continue }
            uses &+= 1
            entries.values[known].lastUse = uses
            return Membership(
                whole: entry.whole, place: place, isPlaylist: isNamed && !entry.companions.contains(url),
                live: entry.document.isLive ? entry.document : nil, laterDuration: later)
        }
        return nil
    }
}

extension PlaylistDocument {
    /// The hosts of the URLs in it.
    fileprivate func segmentHosts(_ renditions: [(id: RenditionID, segments: any SegmentSequence)]) -> Set<String> {
        var hosts = Set(companions(of: renditions).map(\.host) + playlists.map(\.host))
        for (_, segments) in renditions { hosts.formUnion(segments.hosts) }
        return hosts
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
