import CachePolicy
import GRDB
import Synchronization

/// Knows of most missing keys that the index lacks them, without asking it: a Bloom filter (Bloom, CACM 13(7), 1970)
/// over all keys that the index has, or has had since the filter was filled. Can be used from any thread.
///
/// It answers once it has been filled with all existing keys. The key of a later row is entered before the row is
/// written.
final class KeyFilter: Sendable {
    private let state = Mutex(State())

    private struct State {
        var bits: [UInt64] = []
        /// The number of entered keys, and the number it was made for.
        var (count, capacity) = (0, 0)
        var phase = Phase.unfilled
    }

    /// `unusable`: the index could not be read, and is not read again for this.
    private enum Phase { case unfilled, filling, filled, unusable }

    /// With this many bits per key, and this many of them set, about one absent key in 120 is taken for a present one
    /// (Bloom's formula).
    private static let (bitsPerKey, bitsSet) = (10, 7)
    /// At least 40 KiB and at most 160 MiB; for an index with more keys the filter is not used.
    private static let (smallestCapacity, mostKeys) = (1 << 15, 1 << 27)

    /// Whether the index certainly lacks a key; false if the filter cannot tell.
    func certainlyLacks(_ key: CacheKey) -> Bool {
        let hash = Self.hash(key)
        return state.withLock { state in
            state.phase == .filled
                && !Self.places(hash, state.bits.count).allSatisfy { state.bits[$0 >> 6] & 1 << UInt64($0 & 63) != 0 }
        }
    }

    /// Enters the key of a row that is about to be written.
    func enter(_ key: CacheKey) {
        let hash = Self.hash(key)
        state.withLock { state in
            guard !state.bits.isEmpty else { return }
            var isNew = false
            for place in Self.places(hash, state.bits.count) where state.bits[place >> 6] & 1 << UInt64(place & 63) == 0
            {
                state.bits[place >> 6] |= 1 << UInt64(place & 63)
                isNew = true
            }
            // A checkpoint enters the keys of running fetches again and again.
            guard isNew else { return }
            state.count += 1
            // An overfull filter tells less and less: it is filled again, with more room.
            if state.count > state.capacity, state.phase == .filled { state.phase = .unfilled }
        }
    }

    /// - Returns: whether the caller has to fill it. False if it is filled, being filled or unusable.
    func beginFilling() -> Bool {
        state.withLock { state in
            guard state.phase == .unfilled else { return false }
            state.phase = .filling
            return true
        }
    }

    /// Cleared memory for a number of keys.
    struct Memory {
        fileprivate let bits: [UInt64]
        fileprivate let capacity: Int
    }

    /// - Parameter count: roughly the number of keys in the index; there is room for as many again.
    /// - Returns: nil if there are too many.
    static func memory(for count: Int) -> Memory? {
        guard count <= mostKeys / 2 else { return nil }
        let capacity = max(smallestCapacity, 2 * count)
        return Memory(bits: [UInt64](repeating: 0, count: (capacity * bitsPerKey + 63) / 64), capacity: capacity)
    }

    /// Empties the filter. Keys entered from now on are in it. No row may be on its way whose key was entered earlier.
    func empty(into memory: Memory) {
        state.withLock { state in (state.bits, state.count, state.capacity) = (memory.bits, 0, memory.capacity) }
    }

    /// - Parameter isComplete: whether all keys were entered that the index had when the filter was emptied.
    func endFilling(isComplete: Bool) {
        state.withLock { state in
            state.phase = !isComplete ? .unusable : state.count > state.capacity ? .unfilled : .filled
        }
    }

    private static func hash(_ key: CacheKey) -> UInt64 {
        var text = key.text
        return text.withUTF8 { ChunkDigest.of(UnsafeRawBufferPointer($0)) }
    }

    /// The bits of a key: two halves of one hash replace as many hashes as are needed (Kirsch and Mitzenmacher, 2006).
    private static func places(_ hash: UInt64, _ words: Int) -> some Sequence<Int> {
        let (first, step) = (hash & 0xFFFF_FFFF, hash >> 32 | 1)
        let bits = UInt64(words) * 64
        return (0..<UInt64(bitsSet)).lazy.map { Int((first &+ $0 &* step) % bits) }
    }
}

extension CacheIndex {
    /// Enters all keys into the filter.
    /// - Parameters:
    ///   - keysAtOnce: how many are read in one transaction; a long transaction would keep the index's log from being
    ///     shortened.
    ///   - isEnding: asked between pages.
    func fillKeys(keysAtOnce: Int = 4096, isEnding: () -> Bool) throws(StoreError) {
        var isComplete = false
        defer { keys.endFilling(isComplete: isComplete) }
        let count = try database.readOne { try Int.fetchOne($0, sql: "SELECT count(*) FROM resource") ?? 0 }
        guard let memory = KeyFilter.memory(for: count) else { return }
        // Within a write transaction: there can be no other one, and so no row on its way.
        try database.write { _ in keys.empty(into: memory) }
        var last = Int64.min
        while !isEnding() {
            let page = try database.read { db in
                try Row.fetchAll(
                    db.cachedStatement(sql: "SELECT id, key FROM resource WHERE id > ? ORDER BY id LIMIT ?"),
                    arguments: [last, keysAtOnce]
                )
                .map { StoredRow($0) }
            }
            // Nobody can ask for a key that cannot be read.
            for row in page { if let key = try? row.text("key") { keys.enter(CacheKey(text: key)) } }
            guard page.count == keysAtOnce, let next = try? page[page.count - 1].integer("id"), next > last else {
                isComplete = page.count < keysAtOnce
                return
            }
            last = next
        }
    }
}
