import CachePolicy

/// How far a transfer goes past its reader before it pauses.
///
/// Like a kernel's read-ahead, the window grows with what was read in one go: a reader that reads on gets more and more
/// in advance, and a seek that is followed by another one wastes little.
struct ReadAheadWindow: Sendable, Equatable {
    /// For a reader that has read nothing yet, in bytes.
    static let first: Int64 = 128 << 10
    static let standardLimit: Int64 = 32 << 20
    /// In bytes, however much was read.
    let limit: Int64

    init(limit: Int64) { self.limit = max(limit, Self.first) }

    /// The window after this many bytes were read, in bytes.
    func reach(afterReading count: Int64) -> Int64 {
        count < limit / 2 ? min(limit, Self.first + 2 * max(count, 0)) : limit
    }

    /// The window after the reader has left, in case it returns: no more than it has read.
    func reach(afterLeaving count: Int64) -> Int64 {
        min(reach(afterReading: count), max(count, 0), Self.furthestUnread)
    }

    private static let furthestUnread: Int64 = 8 << 20
}

extension CacheFiller {
    /// The window of a demand's transfer.
    func window(of demand: Demand) -> ReadAheadWindow {
        let wanted =
            switch demand.resolvedRule.fill {
            case .read: ReadAheadWindow.first
            case .ahead(let bytes): bytes
            // The fill follows the transfer itself (`ResourceFill`), so the window need not be wider.
            case .end, .whole: ReadAheadWindow.standardLimit
            }
        return ReadAheadWindow(limit: min(wanted, readAhead))
    }
}
