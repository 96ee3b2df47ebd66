import CachePolicy

/// How far past its reader a transfer goes before it pauses.
///
/// It grows with what was read in one go, as the read-ahead of a kernel does: who reads on gets ever more in advance,
/// and of what is fetched for a seek that is followed by the next one little is in vain.
struct ReadAheadWindow: Sendable, Equatable {
    /// For who has read nothing yet, in bytes.
    static let first: Int64 = 128 << 10
    static let standardLimit: Int64 = 32 << 20
    /// In bytes, however much was read.
    let limit: Int64

    init(limit: Int64) { self.limit = max(limit, Self.first) }

    /// In bytes, for a reader that has read so many.
    func reach(afterReading count: Int64) -> Int64 {
        count < limit / 2 ? min(limit, Self.first + 2 * max(count, 0)) : limit
    }

    /// The same, once the reader has left: it may come back, or it was the last that anybody wants of this. No more
    /// than was read is fetched on the chance.
    func reach(afterLeaving count: Int64) -> Int64 {
        min(reach(afterReading: count), max(count, 0), Self.furthestUnread)
    }

    private static let furthestUnread: Int64 = 8 << 20
}

extension CacheFiller {
    /// How far a transfer goes for who demands it.
    func window(of demand: Demand) -> ReadAheadWindow {
        let wanted =
            switch demand.resolvedRule.fill {
            case .read: ReadAheadWindow.first
            case .ahead(let bytes): bytes
            // What goes on to the end follows the transfer itself (`ResourceFill`).
            case .end, .whole: ReadAheadWindow.standardLimit
            }
        return ReadAheadWindow(limit: min(wanted, readAhead))
    }
}
