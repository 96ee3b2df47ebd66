import CachePolicy

/// 64 consecutive chunks of a generation, in memory.
struct Extent: Sendable {
    /// Chunks that are in the file as a whole: the range bitmap.
    var present = Presence()
    /// Present chunks that the index does not know yet.
    var unsaved = Presence()
    /// Present chunks whose checksum must be compared before they are served.
    var unverified = Presence()
    /// Chunks that have blocks but are not present: an interrupted write, a bad chunk.
    var residue = Presence()
    /// Checksums of the unsaved chunks, by bit.
    var checksums: [Int: UInt64] = [:]
    /// Readers and transfers that need this extent to stay.
    var leases: Int32 = 0
    /// Its hole is being punched; until that is done nothing is written here.
    var isEvicting = false
    /// Microseconds since 1970.
    var lastAccess: Int64 = 0
    /// Chunks found in memory a moment ago, until when that is taken for granted.
    var resident = Presence()
    var residentUntil: Int64 = 0
    /// Touched since the index was last told.
    var isTouched = false

    mutating func wasRead(at time: Int64, isLeased: Bool) {
        if isLeased { leases += 1 }
        lastAccess = time
        isTouched = true
    }

    /// A claimed chunk is in the file as a whole: its claim and the lease of it end.
    /// - Parameter checksum: nil where none is kept.
    mutating func complete(_ bit: Int, checksum: UInt64?, now: Int64) {
        leases -= 1
        residue.remove(bit)
        present.insert(bit)
        unsaved.insert(bit)
        unverified.remove(bit)
        lastAccess = now
        if let checksum { checksums[bit] = checksum }
    }

    /// Present chunks are absent from now on; their blocks stay. The index still calls them present, until it is told.
    mutating func drop(_ chunks: Presence) {
        present.subtract(chunks)
        unsaved.subtract(chunks)
        unverified.subtract(chunks)
        residue.formUnion(chunks)
        isTouched = true
    }

    /// The index is about to be told of it.
    mutating func wasTold(ofNewChunks: Bool) {
        isTouched = false
        guard ofNewChunks else { return }
        unsaved = Presence()
        checksums = [:]
    }

    /// Whether nothing of it is known or wanted.
    var isBlank: Bool {
        leases == 0 && hasBlocks.isEmpty && !isEvicting && !isTouched && unsaved.isEmpty && unverified.isEmpty
            && checksums.isEmpty
    }

    var hasBlocks: Presence { present.union(residue) }

    /// Present chunks that the index knows.
    var saved: Presence { present.subtracting(unsaved) }
}
