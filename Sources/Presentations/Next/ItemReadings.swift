import Activity
import CachePolicy
import HTTPModel

/// How much of each item its players have read. A value, without clock and lock.
///
///     item      |=========|----|====|=======|-----|
///     was read   ▓▓▓▓▓▓▓▓▓      ▓▓▓▓ ▓▓▓▓▓▓▓         three quarters of all bytes, each counted once
///
/// Players seek, and often read the end of a file first: only distinct bytes count.
package struct ItemReadings: Sendable {
    /// An item that a player reads.
    package struct ID: Hashable, Sendable {
        package let player: PlayerID
        package let item: CacheKey

        package init(player: PlayerID, item: CacheKey) { (self.player, self.item) = (player, item) }
    }

    package struct Entry {
        /// In bytes.
        let length: Int64
        /// What was read, in order; neither touching nor overlapping.
        var spans: [Range<Int64>] = []
        /// Whether three quarters were read: this is reported once.
        var isRead = false
        var lastUse: UInt64 = 0
    }

    /// The most items, of all players together.
    package static let most = 256
    /// The most spans of an item. Beyond it the shortest is forgotten, and its bytes count again when they are read
    /// again.
    package static let mostSpans = 64

    package private(set) var entries: [ID: Entry] = [:]
    private var uses: UInt64 = 0

    package init() {}

    /// Notes that a player begins to read an item.
    /// - Parameters:
    ///   - offset: the first byte that it requests.
    ///   - length: the length of the item in bytes.
    /// - Returns: the offset at which it will have read three quarters if it reads on from here; nil if it has
    ///   already, or would not have at the end.
    package mutating func begin(_ id: ID, at offset: Int64, length: Int64) -> Int64? {
        guard length > 0, offset >= 0 else { return nil }
        let entry = entry(id, length)
        guard !entry.isRead else { return nil }
        return entry.place(from: offset, missing: Self.threeQuarters(of: length) -| entry.count)
    }

    /// Notes what a player has read of an item.
    /// - Parameters:
    ///   - range: half-open.
    ///   - length: the length of the item in bytes.
    /// - Returns: whether three quarters have been read now; true only once for each item and player.
    package mutating func read(_ range: Range<Int64>, of id: ID, length: Int64) -> Bool {
        guard length > 0 else { return false }
        var entry = entry(id, length)
        entry.insert(range.clamped(to: Range(from: 0, upTo: length) ?? 0..<0))
        let isNews = !entry.isRead && entry.count >= Self.threeQuarters(of: length)
        entry.isRead = entry.isRead || isNews
        entries[id] = entry
        return isNews
    }

    private static func threeQuarters(of length: Int64) -> Int64 {
        length -| length / 4 // no trap: not by 0
    }

    /// The entry of an item, which becomes the most recent one. A new version of an item begins again.
    private mutating func entry(_ id: ID, _ length: Int64) -> Entry {
        uses &+= 1
        var entry = entries[id].flatMap { $0.length == length ? $0 : nil } ?? Entry(length: length)
        entry.lastUse = uses
        if entries[id] == nil, entries.count >= Self.most,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })?.key
        {
            entries[oldest] = nil
        }
        entries[id] = entry
        return entry
    }
}

extension ItemReadings.Entry {
    /// The number of bytes that were read.
    fileprivate var count: Int64 { spans.reduce(0) { $0 +| Int64($1.count) } }

    /// The offset after this many further unread bytes; nil if there are fewer.
    fileprivate func place(from offset: Int64, missing: Int64) -> Int64? {
        var (place, missing) = (offset, missing)
        for span in spans where span.upperBound > place {
            let unread = max(0, span.lowerBound -| place)
            if missing <= unread { return place +| missing }
            missing = missing -| unread
            place = span.upperBound
        }
        let end = place +| missing
        return end <= length ? end : nil
    }

    /// Adds a range, joined with those that it touches.
    fileprivate mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        let touching = spans.filter { $0.lowerBound <= range.upperBound && range.lowerBound <= $0.upperBound }
        let start = touching.first.map { min($0.lowerBound, range.lowerBound) } ?? range.lowerBound
        let end = touching.last.map { max($0.upperBound, range.upperBound) } ?? range.upperBound
        let joined = Range(from: start, upTo: end) ?? range
        spans.removeAll { joined.lowerBound <= $0.lowerBound && $0.upperBound <= joined.upperBound }
        spans.insert(joined, at: spans.firstIndex { $0.lowerBound > joined.lowerBound } ?? spans.endIndex)
        if spans.count > ItemReadings.mostSpans,
            let shortest = spans.indices.min(by: { spans[$0].count < spans[$1].count })
        {
            spans.remove(at: shortest)
        }
    }
}
