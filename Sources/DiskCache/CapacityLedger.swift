// no traps: what is counted are allocated bytes of files, at most 1 << 60 of them (`CacheIndex.checkMeta`); what the
// disk is said to have is held
import Foundation
import HTTPModel
import Synchronization

/// The bytes that the cache may take and has taken, in allocated blocks. Space is reserved here before it is written,
/// so the sum never exceeds the limit, and the disk keeps `minFree`.
package final class CapacityLedger: Sendable {
    /// File systems allocate in blocks of this many bytes.
    package static let blockSize: Int64 = 4096
    /// Reserved for each file: its share of a directory, and the block in which the file system lists a sparse file's
    /// parts.
    static let fileOverhead: Int64 = 8192

    private let state: Mutex<State>
    private let directory: String

    fileprivate struct State {
        var limit: Int64
        var minFree: Int64
        var data: Int64 = 0
        var index: Int64 = 0
        /// What may be on the disk without being counted, after a power cut, until everything has been looked at.
        var uncounted: Int64 = 0
        /// Reserved, and perhaps not yet on the disk.
        var unwritten: Int64 = 0
        /// How much more the disk takes before `minFree` is touched, less what was reserved since it was asked.
        var diskAllowance: Int64 = 0
        var used: Int64 { data + index }
    }

    init(directory: String, limit: Int64, minFree: Int64) {
        self.directory = directory
        state = Mutex(State(limit: limit, minFree: minFree))
        refreshDisk()
    }

    static func rounded(_ bytes: Int64) -> Int64 {
        (bytes + blockSize - 1) / blockSize * blockSize
    }

    /// Takes so many bytes for what is about to be written, or none; `wrote` when it is.
    /// - Returns: whether they were there to take.
    func reserveToWrite(_ bytes: Int64) -> Bool {
        reserve(bytes, isToBeWritten: true)
    }

    /// What was reserved is on the disk, or will not be written.
    func wrote(_ bytes: Int64) {
        state.withLock { $0.unwritten -= bytes }
    }

    /// Takes so many bytes, or none.
    /// - Returns: whether they were there to take.
    func reserve(_ bytes: Int64, isToBeWritten: Bool = false) -> Bool {
        if tryReserve(bytes, isToBeWritten: isToBeWritten) { return true }
        // The allowance may be an old one.
        refreshDisk()
        return tryReserve(bytes, isToBeWritten: isToBeWritten)
    }

    /// Takes the little that a new file needs, out of the headroom where there is nothing else.
    func reserveFile() -> Bool {
        refreshDisk()
        return tryReserve(Self.fileOverhead, usesHeadroom: true)
    }

    private func tryReserve(_ bytes: Int64, usesHeadroom: Bool = false, isToBeWritten: Bool = false) -> Bool {
        state.withLock { state in
            let limit = state.limit - (usesHeadroom ? state.headroom / 2 : state.headroom)
            guard state.used + state.uncounted + bytes <= limit, bytes <= state.diskAllowance else { return false }
            state.data += bytes
            state.diskAllowance -= bytes
            if isToBeWritten { state.unwritten += bytes }
            return true
        }
    }

    func release(_ bytes: Int64) { adjust(by: -bytes) } // no trap: a number of bytes is none below 0

    /// Counts more, or less, of what is there whether there is room or not. Never less than nothing: what rows of a
    /// damaged index say may be more than was counted, and what is below 0 would let the cache grow beyond its limit.
    /// The next start counts anew.
    func adjust(by delta: Int64) {
        state.withLock {
            let before = $0.data
            $0.data = max(0, before +| delta)
            $0.diskAllowance -|= $0.data - before
        }
    }

    /// Changes the limits; what is too much has to be evicted.
    func setLimits(maxSize: Int64?, minFree: Int64?) {
        state.withLock { state in
            state.limit = maxSize ?? state.limit
            state.minFree = minFree ?? state.minFree
        }
        refreshDisk()
    }

    /// Keeps so much of the limit for what has not been looked at yet.
    func setUncounted(_ bytes: Int64) {
        state.withLock { $0.uncounted = bytes }
    }

    var hasUncounted: Bool { state.withLock { $0.uncounted > 0 } }

    /// Counts what is there already, when the store opens.
    func adopt(data: Int64) {
        state.withLock { $0.data = data }
    }

    func setIndex(bytes: Int64) {
        state.withLock { state in
            state.diskAllowance -= max(0, bytes - state.index)
            state.index = bytes
        }
    }

    /// Asks the file system how much is free. An allowance counts at most a little, so that other programs' writes are
    /// seen soon.
    func refreshDisk() {
        guard let free = FileSystem.disk(of: directory)?.free else { return }
        state.withLock {
            $0.diskAllowance = min(free -| $0.minFree -| $0.indexGrowth -| $0.unwritten, Self.longestAllowance)
        }
    }

    private static let longestAllowance: Int64 = 64 << 20

    /// Bytes to evict so that what comes next finds room at once; 0 while there is enough.
    var shortage: Int64 {
        state.withLock { state in
            let room = min(state.limit - state.headroom - state.used, state.diskAllowance)
            return room < state.lowRoom ? state.lowRoom * 2 - room : 0
        }
    }

    /// What a resource could have if all went that is not pinned.
    /// - Parameter pinned: what pinned resources take.
    func attainable(beside pinned: Int64) -> Int64 {
        let free = FileSystem.disk(of: directory)?.free ?? .max / 2
        return state.withLock { state in
            min(
                state.limit -| state.headroom -| state.index -| pinned,
                free -| state.minFree -| state.indexGrowth +| state.data -| pinned)
        }
    }

    package var size: Int64 { state.withLock { $0.used } }
    package var dataSize: Int64 { state.withLock { $0.data } }
    package var limit: Int64 { state.withLock { $0.limit } }
    package var minFree: Int64 { state.withLock { $0.minFree } }
    /// How far ahead of its readers a transfer may write, so that several fit beside what they read.
    package var fairShare: Int64 { state.withLock { $0.limit / 8 } }
}

extension CapacityLedger {
    /// The smallest limit that leaves room for the index and a few extents.
    package static let smallestLimit: Int64 = 16_000_000
}

private extension CapacityLedger.State {
    /// Kept for the growth of the index and its log between two looks at their size.
    var headroom: Int64 { min(8 << 20, limit / 8) }
    /// Of that, what the index may grow by on the disk before the disk is asked again.
    var indexGrowth: Int64 { headroom / 4 }
    /// Evicting in the background begins below this. It goes by what the cache can have: on a disk far smaller than the
    /// limit, nothing would be enough otherwise, and all that is cached would go as soon as nobody reads it.
    var lowRoom: Int64 { min(32 << 20, max(1 << 20, min(limit, used +| diskAllowance) / 16)) }
}
