import CachePolicy
import GRDB
import Synchronization

/// Tells of most keys that the index does not have them, without asking it: a Bloom filter (Bloom, CACM 13(7), 1970) over all keys that it has
/// or ever had since the filter was filled. Any thread.
///
/// It answers once it has been filled with what the index had before; a row that is written later has its key entered first.
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

    /// With so many for each key and so many of them set, one key in about 120 passes for one that is there (Bloom's formula).
    private static let (bitsPerKey, bitsSet) = (10, 7)
    private static let (smallestCapacity, mostKeys) = (1 << 15, 1 << 26)

    /// Whether the index certainly lacks a key; false while nobody knows.
    func certainlyLacks(_ key: CacheKey) -> Bool {
        let hash = Self.hash(key)
        return state.withLock { state in state.phase == .filled && !Self.places(hash, state.bits.count).allSatisfy { state.bits[$0 >> 6] & 1 << UInt64($0 & 63) != 0 } }
    }

    /// A row with this key is about to be written.
    func enter(_ key: CacheKey) {
        let hash = Self.hash(key)
        state.withLock { state in
            guard !state.bits.isEmpty else { return }
            for place in Self.places(hash, state.bits.count) { state.bits[place >> 6] |= 1 << UInt64(place & 63) }
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

    /// Empties it. From here on, what is entered is in it. No row may be on its way then whose key was entered before.
    /// - Parameter count: how many keys the index has; there is room for as many again.
    func empty(for count: Int) {
        let capacity = max(Self.smallestCapacity, 2 * min(count, Self.mostKeys))
        let bits = [UInt64](repeating: 0, count: (capacity * Self.bitsPerKey + 63) / 64)
        state.withLock { state in (state.bits, state.count, state.capacity) = (bits, 0, capacity) }
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

    /// The bits of a key: two halves of one hash stand for as many hashes as are needed (Kirsch and Mitzenmacher, 2006).
    private static func places(_ hash: UInt64, _ words: Int) -> some Sequence<Int> {
        let (first, step) = (hash & 0xFFFF_FFFF, hash >> 32 | 1)
        let bits = UInt64(words) * 64
        return (0..<UInt64(bitsSet)).lazy.map { Int((first &+ $0 &* step) % bits) }
    }
}

extension CacheIndex {
    private static let keysAtOnce = 4096

    /// Enters all keys into the filter.
    /// - Parameter isEnding: asked between pages.
    func fillKeys(isEnding: () -> Bool) throws(StoreError) {
        var isComplete = false
        defer { keys.endFilling(isComplete: isComplete) }
        // Within a transaction that may write: there is no other one then, and so no row on its way.
        try write { db in keys.empty(for: try Int.fetchOne(db, sql: "SELECT count(*) FROM resource") ?? 0) }
        var last = Int64.min
        while !isEnding() {
            let page = try read { db in
                try Row.fetchAll(db.cachedStatement(sql: "SELECT id, key FROM resource WHERE id > ? ORDER BY id LIMIT ?"), arguments: [last, Self.keysAtOnce])
                    .map { StoredRow($0) }
            }
            // A key that cannot be read is none that anybody asks for.
            for row in page { if let key = try? row.text("key") { keys.enter(CacheKey(text: key)) } }
            guard page.count == Self.keysAtOnce, let next = try? page[page.count - 1].integer("id"), next > last else {
                isComplete = page.count < Self.keysAtOnce
                return
            }
            last = next
        }
    }
}

extension CacheStore {
    /// Whether nothing is cached of a resource, as far as that can be told at once.
    package func certainlyLacks(_ key: CacheKey) -> Bool {
        // In this order: what is no longer open has been entered before.
        guard !isKnown(key) else { return false }
        if index.keys.certainlyLacks(key) { return true }
        fillKeyFilter()
        return false
    }

    /// In the background, when it is first asked: what plays nothing new never needs it.
    private func fillKeyFilter() {
        guard index.keys.beginFilling() else { return }
        let runs = auditors.run { [self] in
            report("read which resources are cached") { () throws(StoreError) in
                try index.fillKeys { isEnding.load(ordering: .relaxed) }
            }
        }
        if !runs { index.keys.endFilling(isComplete: false) }
    }
}
