import CachePolicy
import GRDB
import Synchronization

/// Tells of most keys that the index does not have them, without asking it: a Bloom filter (Bloom, CACM 13(7), 1970)
/// over all keys that it has or ever had since the filter was filled. Any thread.
///
/// It answers once it has been filled with what the index had before; a row that is written later has its key entered
/// first.
final class KeyFilter: Sendable {
    private let state = Mutex(State())

    private struct State {
        var bits: [UInt64] = []
        /// Keys that were entered, and how many are meant to be.
        var (count, capacity) = (0, 0)
        var phase = Phase.unfilled
    }

    /// `unusable`: the index could not be read, and is not read again and again for this.
    private enum Phase { case unfilled, filling, filled, unusable }

    /// With so many for each key and so many of them set, one key in about 120 passes for one that is there (Bloom's
    /// formula).
    private static let (bitsPerKey, bitsSet) = (10, 7)
    /// 40 KiB at least, 160 MiB at most: of an index with more keys nothing is known.
    private static let (smallestCapacity, mostKeys) = (1 << 15, 1 << 27)

    /// Whether the index certainly lacks a key; false while nobody knows.
    func certainlyLacks(_ key: CacheKey) -> Bool {
        let hash = Self.hash(key)
        return state.withLock { state in
            state.phase == .filled
                && !Self.places(hash, state.bits.count).allSatisfy { state.bits[$0 >> 6] & 1 << UInt64($0 & 63) != 0 }
        }
    }

    /// A row with this key is about to be written.
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
            // Each checkpoint enters the keys of what is being filled.
            guard isNew else { return }
            state.count += 1
            // Beyond that it would say less and less; it is filled anew, and larger.
            if state.count > state.capacity, state.phase == .filled { state.phase = .unfilled }
        }
    }

    /// - Returns: whether the caller has to fill it; false where it is filled, or somebody does that, or nobody can.
    func beginFilling() -> Bool {
        state.withLock { state in
            guard state.phase == .unfilled else { return false }
            state.phase = .filling
            return true
        }
    }

    /// Memory for so many keys, all of whose bits are 0.
    struct Memory {
        fileprivate let bits: [UInt64]
        fileprivate let capacity: Int
    }

    /// - Parameter count: how many keys the index has about; there is room for as many again.
    /// - Returns: nil where there are too many.
    static func memory(for count: Int) -> Memory? {
        guard count <= mostKeys / 2 else { return nil }
        let capacity = max(smallestCapacity, 2 * count)
        return Memory(bits: [UInt64](repeating: 0, count: (capacity * bitsPerKey + 63) / 64), capacity: capacity)
    }

    /// Empties it. From here on, what is entered is in it. No row may be on its way then whose key was entered before.
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

    /// The bits of a key: two halves of one hash stand for as many hashes as are needed (Kirsch and Mitzenmacher,
    /// 2006).
    private static func places(_ hash: UInt64, _ words: Int) -> some Sequence<Int> {
        let (first, step) = (hash & 0xFFFF_FFFF, hash >> 32 | 1)
        let bits = UInt64(words) * 64
        return (0..<UInt64(bitsSet)).lazy.map { Int((first &+ $0 &* step) % bits) }
    }
}

extension CacheIndex {
    /// Enters all keys into the filter.
    /// - Parameters:
    ///   - keysAtOnce: how many are read in one transaction; a long one would keep the index's log from being
    ///     shortened.
    ///   - isEnding: asked between pages.
    func fillKeys(keysAtOnce: Int = 4096, isEnding: () -> Bool) throws(StoreError) {
        var isComplete = false
        defer { keys.endFilling(isComplete: isComplete) }
        let count = try database.readOne { try Int.fetchOne($0, sql: "SELECT count(*) FROM resource") ?? 0 }
        guard let memory = KeyFilter.memory(for: count) else { return }
        // Within a transaction that may write: there is no other one then, and so no row on its way.
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
            // A key that cannot be read is none that anybody asks for.
            for row in page { if let key = try? row.text("key") { keys.enter(CacheKey(text: key)) } }
            guard page.count == keysAtOnce, let next = try? page[page.count - 1].integer("id"), next > last else {
                isComplete = page.count < keysAtOnce
                return
            }
            last = next
        }
    }
}
