import Activity
import CachePolicy
import HTTPModel

/// How much of each item its players have read. A value, without clock and lock.
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
        var read = ReadRanges()
        /// Whether three quarters were read: this is reported once.
        var isRead = false
        var lastUse: UInt64 = 0
    }

    /// The most items, of all players together.
    package static let most = 256

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
        let missing = ReadRanges.threeQuarters(of: length) -| entry.read.count
        return entry.read.place(from: offset, missing: missing, of: length)
    }

    /// Notes what a player has read of an item.
    /// - Parameters:
    ///   - range: half-open.
    ///   - length: the length of the item in bytes.
    /// - Returns: whether three quarters have been read now; true only once for each item and player.
    package mutating func read(_ range: Range<Int64>, of id: ID, length: Int64) -> Bool {
        guard length > 0 else { return false }
        var entry = entry(id, length)
        entry.read.insert(range.clamped(to: Range(from: 0, upTo: length) ?? 0..<0))
        let isNews = !entry.isRead && entry.read.count >= ReadRanges.threeQuarters(of: length)
        entry.isRead = entry.isRead || isNews
        entries[id] = entry
        return isNews
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
