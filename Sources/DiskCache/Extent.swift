import CachePolicy

/// 64 consecutive chunks of a generation, in memory.
struct Extent: Sendable {
    /// Chunks that are completely in the file.
    var present = Presence()
    /// Present chunks that the index does not know yet.
    var unsaved = Presence()
    /// Present chunks whose checksum must be compared before they are served.
    var unverified = Presence()
    /// Chunks that have blocks but are not present, from an interrupted write or a damaged chunk.
    var residue = Presence()
    /// Checksums of the unsaved chunks, by bit.
    var checksums: [Int: UInt64] = [:]
    /// The number of readers and transfers that need this extent to stay.
    var leases: Int32 = 0
    /// Whether its hole is being punched; meanwhile nothing is written here.
    var isEvicting = false
    /// Microseconds since 1970.
    var lastAccess: Int64 = 0
    /// Chunks that were found in memory, and until when that is believed, by the monotonic clock.
    var resident = Presence()
    var residentUntil: Int64 = 0
    /// Whether the index has an older `lastAccess`.
    var isRead = false
    /// Whether it was changed, other than by new chunks, since the last update of the index.
    var isChanged = false

    mutating func wasRead(at time: Int64, isLeased: Bool) {
        if isLeased { leases += 1 }
        lastAccess = time
        isRead = true
    }

    /// Completes a claimed chunk: its claim and the claim's lease end.
    /// - Parameter checksum: nil if none is kept.
    mutating func complete(_ bit: Int, checksum: UInt64?, now: Int64) {
        leases -= 1
        residue.remove(bit)
        present.insert(bit)
        unsaved.insert(bit)
        unverified.remove(bit)
        lastAccess = now
        if let checksum { checksums[bit] = checksum }
    }

    /// Makes chunks absent; their blocks stay. The index calls them present until the next checkpoint.
    mutating func drop(_ chunks: Presence) {
        present.subtract(chunks)
        unsaved.subtract(chunks)
        unverified.subtract(chunks)
        residue.formUnion(chunks)
        isChanged = true
    }

    /// The extent's state goes into an update of the index.
    mutating func note(ofNewChunks: Bool) {
        (isRead, isChanged) = (false, false)
        guard ofNewChunks else { return }
        unsaved = Presence()
        checksums = [:]
    }

    /// Whether there is nothing to remember about it. Inlined, as otherwise each look at one in a table copies it.
    @inline(__always) var isBlank: Bool {
        leases == 0 && hasBlocks.isEmpty && !isEvicting && !isChanged && unsaved.isEmpty && unverified.isEmpty
            && checksums.isEmpty
    }

    @inline(__always) var hasBlocks: Presence { present.union(residue) }

    /// Whether the index has it, with an older `lastAccess`.
    var isReadUnsaved: Bool { isRead && !isEvicting && !saved.isEmpty }

    /// Present chunks that the index knows.
    var saved: Presence { present.subtracting(unsaved) }
}
