// no traps: the counted values are allocated bytes of files, of which there are at most 1 << 60
// (`CacheIndex.checkMeta`); the size of the disk is bounded
import Foundation
import HTTPModel
import Synchronization

/// Counts the bytes that the cache may take and has taken, in allocated blocks. Space is reserved here before it is
/// written, so the sum never exceeds the limit, and the disk keeps `minFree`.
package final class CapacityLedger: Sendable {
    /// File systems allocate blocks of this many bytes.
    package static let blockSize: Int64 = 4096
    /// Reserved for each file: its share of a directory, and the block in which the file system lists a sparse file's
    /// parts.
    static let fileOverhead: Int64 = 8192

    private let state: Mutex<State>
    private let directory: String
    let diskReserve: DiskReserve
    /// The limit, as it is read without the lock.
    private let knownLimit: Atomic<Int64>
    /// Reserved bytes that may not be on the disk yet.
    private let unwritten = Atomic<Int64>(0)

    fileprivate struct State {
        var limit: Int64
        var minFree: Int64
        var data: Int64 = 0
        var index: Int64 = 0
        /// What may be on the disk uncounted after a power cut, until all files have been examined.
        var uncounted: Int64 = 0
        /// The largest write refused since somebody last made room.
        var refused: Int64 = 0
        /// How many bytes can be written before `minFree` is touched, as last measured, minus what was reserved since.
        var diskAllowance: Int64 = 0
        var used: Int64 { data + index }
    }

    init(directory: String, limit: Int64, minFree: Int64) {
        (self.directory, diskReserve) = (directory, DiskReserve(in: directory, maxSize: limit))
        state = Mutex(State(limit: limit, minFree: minFree))
        knownLimit = Atomic(limit)
        refreshDisk()
    }

    static func rounded(_ bytes: Int64) -> Int64 {
        (bytes + blockSize - 1) / blockSize * blockSize
    }

    /// Reserves bytes for a write, all or nothing; call `wrote` after the write.
    /// - Parameter isSure: whether they are needed; otherwise nothing is measured or noted if there is no room.
    /// - Returns: whether there was room.
    func reserveToWrite(_ bytes: Int64, isSure: Bool = true) -> Bool {
        isSure ? reserve(bytes, isToBeWritten: true) : tryReserve(bytes, isToBeWritten: true)
    }

    /// Reserved bytes are on the disk, or will not be written.
    func wrote(_ bytes: Int64) { unwritten.subtract(bytes, ordering: .relaxed) }

    /// Reserves bytes, all or nothing.
    /// - Returns: whether there was room.
    func reserve(_ bytes: Int64, isToBeWritten: Bool = false) -> Bool {
        if tryReserve(bytes, isToBeWritten: isToBeWritten) { return true }
        // The allowance may be outdated.
        refreshDisk(for: bytes)
        if tryReserve(bytes, isToBeWritten: isToBeWritten) { return true }
        if isToBeWritten { state.withLock { $0.refused = max($0.refused, bytes) } }
        return false
    }

    /// The largest write refused since this was last asked, in bytes: room must be made for it.
    func takeRefused() -> Int64 {
        state.withLock { state in
            defer { state.refused = 0 }
            return state.refused
        }
    }

    /// Reserves the few bytes of a new file, from the headroom if necessary.
    func reserveFile(_ overhead: Int64) -> Bool {
        refreshDisk()
        return tryReserve(overhead, usesHeadroom: true)
    }

    /// Whether a refused write fits by now.
    func hasRoom(for bytes: Int64) -> Bool { state.withLock { $0.hasRoom(for: bytes, headroom: $0.headroom) } }

    private func tryReserve(_ bytes: Int64, usesHeadroom: Bool = false, isToBeWritten: Bool = false) -> Bool {
        state.withLock { state in
            guard state.hasRoom(for: bytes, headroom: usesHeadroom ? state.headroom / 2 : state.headroom) else {
                return false
            }
            state.data += bytes
            state.diskAllowance -= bytes
            if isToBeWritten { unwritten.add(bytes, ordering: .relaxed) }
            return true
        }
    }

    func release(_ bytes: Int64) { adjust(by: -bytes) } // no trap: a number of bytes is never negative

    /// Counts bytes that exist, or no longer do, whether there is room or not. The count never falls below 0, as a
    /// negative one would let the cache exceed its limit: rows of a damaged index may claim more than was counted. The
    /// next start counts again.
    func adjust(by delta: Int64) {
        state.withLock {
            let before = $0.data
            $0.data = max(0, before +| delta)
            $0.diskAllowance -|= $0.data - before
        }
    }

    /// Changes the limits. The caller evicts what exceeds them.
    func setLimits(maxSize: Int64?, minFree: Int64?) {
        state.withLock { state in
            state.limit = maxSize ?? state.limit
            state.minFree = minFree ?? state.minFree
            knownLimit.store(state.limit, ordering: .relaxed)
        }
        refreshDisk()
    }

    /// Sets aside room for files that have not been examined yet.
    func setUncounted(_ bytes: Int64) {
        state.withLock { $0.uncounted = bytes }
    }

    /// Room set aside for files that have not been examined, in bytes.
    package var uncounted: Int64 { state.withLock { $0.uncounted } }

    /// Sets the size of existing data when the store opens.
    func adopt(data: Int64) {
        state.withLock { $0.data = data }
    }

    func setIndex(bytes: Int64) {
        state.withLock { state in
            state.diskAllowance -= max(0, bytes - state.index)
            state.index = bytes
        }
    }

    /// Asks the file system how much is free. The allowance is kept small, so that other programs' writes are noticed
    /// soon.
    /// - Parameter bytes: a write that the allowance should cover.
    func refreshDisk(for bytes: Int64 = 0) {
        guard let free = FileSystem.disk(of: directory)?.free else { return }
        state.withLock {
            $0.diskAllowance = min(
                free -| $0.minFree -| $0.indexGrowth -| unwritten.load(ordering: .relaxed),
                max(Self.longestAllowance, bytes))
        }
    }

    private static let longestAllowance: Int64 = 64 << 20

    /// Bytes to evict so that the next writes find room at once; 0 if there is enough.
    var shortage: Int64 { shortage(for: 0, isRefused: false) }

    /// - Parameter bytes: a write that does not fit.
    func shortage(for bytes: Int64) -> Int64 { shortage(for: bytes, isRefused: true) }

    private func shortage(for bytes: Int64, isRefused: Bool) -> Int64 {
        state.withLock { state in
            // Room that is set aside for all that may be there is made for a write, not beforehand: nearly always,
            // nothing is found. All of it cannot be freed.
            let uncounted = isRefused && state.uncounted < state.limit ? state.uncounted : 0
            let room = min(state.limit - state.headroom - state.used -| uncounted, state.diskAllowance)
            let wanted = max(state.lowRoom, bytes)
            return room < wanted ? wanted +| state.lowRoom -| room : 0
        }
    }

    /// The most that a resource could take if everything that is not pinned were evicted.
    /// - Parameter pinned: the size of pinned resources.
    package func attainable(beside pinned: Int64) -> Int64 {
        let free = FileSystem.disk(of: directory)?.free ?? .max / 2
        return state.withLock { state in
            min(
                state.limit -| state.headroom -| state.index -| pinned,
                free -| state.minFree -| state.indexGrowth +| state.data -| pinned)
        }
    }

    package var size: Int64 { state.withLock { $0.used } }
    package var dataSize: Int64 { state.withLock { $0.data } }
    package var limit: Int64 { knownLimit.load(ordering: .relaxed) }
    package var minFree: Int64 { state.withLock { $0.minFree } }
    /// The widest read-ahead of a transfer: several must fit beside what they read.
    package var fairShare: Int64 { limit / 8 }
}

extension CapacityLedger {
    /// The smallest limit that leaves room for the index and a few extents.
    package static let smallestLimit: Int64 = 16_000_000
}

private extension CapacityLedger.State {
    /// Kept free for the growth of the index and its log between two measurements.
    var headroom: Int64 { min(8 << 20, limit / 8) }
    /// The part of the headroom that is added to `minFree`, for the index to grow before the disk is measured again.
    var indexGrowth: Int64 { headroom / 4 }
    /// Below this room, eviction in the background begins. It depends on what the cache can really have: on a disk far
    /// smaller than the limit, a fixed value would never be reached, and everything cached would be evicted as soon as
    /// nobody reads it.
    var lowRoom: Int64 { min(32 << 20, max(1 << 20, min(limit, used +| diskAllowance) / 16)) }

    func hasRoom(for bytes: Int64, headroom: Int64) -> Bool {
        used + uncounted + bytes <= limit - headroom && bytes <= diskAllowance
    }
}
