import HTTPModel

/// When a server that is draining has done so. A value; times are monotonic, in nanoseconds.
struct DrainProgress {
    /// What the loops say.
    struct Look {
        /// Answers that are being sent and have an end.
        var running = 0
        /// When the last one ended; 0 if none has since the beginning.
        var lastEnd: UInt64 = 0
        /// Whether a balancer has yet to hear often enough that the server is draining.
        var isAwaited = false
    }

    let began: UInt64
    /// No later than this.
    let end: UInt64
    /// So long nothing has to have run. Zero if there can be no balancer, which would have to notice first.
    let quiet: UInt64

    /// - Returns: whether to wait on.
    func continues(_ look: Look, now: UInt64) -> Bool {
        guard now < end else { return false }
        if look.running > 0 || now -| max(began, look.lastEnd) < quiet { return true }
        return quiet > 0 && look.isAwaited
    }
}
