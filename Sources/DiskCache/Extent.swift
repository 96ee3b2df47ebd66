import CachePolicy

/// 64 consecutive chunks of a generation, in memory.
struct Extent {
    /// Chunks that are in the file as a whole: the range bitmap.
    var present = Presence(bits: 0)
    /// Present chunks that the index does not know yet.
    var unsaved = Presence(bits: 0)
    /// Present chunks whose checksum must be compared before they are served.
    var unverified = Presence(bits: 0)
    /// Chunks that have blocks but are not present: an interrupted write, a bad chunk.
    var residue = Presence(bits: 0)
    /// Checksums of the unsaved chunks, by bit.
    var checksums: [Int: UInt64] = [:]
    /// Readers and transfers that need this extent to stay.
    var leases: Int32 = 0
    /// Its hole is being punched; until that is done nothing is written here.
    var isEvicting = false
    /// Microseconds since 1970.
    var lastAccess: Int64 = 0
    /// Chunks found in memory a moment ago, until when that is taken for granted.
    var resident = Presence(bits: 0)
    var residentUntil: Int64 = 0
    /// Touched since the index was last told.
    var isTouched = false

    mutating func wasRead(at time: Int64, isLeased: Bool) {
        if isLeased { leases += 1 }
        lastAccess = time
        isTouched = true
    }

    /// Whether nothing of it is known or wanted.
    var isBlank: Bool {
        leases == 0 && hasBlocks.isEmpty && !isEvicting && !isTouched && unsaved.isEmpty && unverified.isEmpty
            && checksums.isEmpty
    }

    var hasBlocks: Presence { Presence(bits: present.bits | residue.bits) }
}
