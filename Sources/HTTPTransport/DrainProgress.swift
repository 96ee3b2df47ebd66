import HTTPModel

/// When a server that is draining has done so. A value; times are monotonic, in nanoseconds.
struct DrainProgress {
    /// What the loops say.
    struct Look {
        /// Answers that are being sent and have an end.
        var running = 0
        /// When the last one ended; 0 if none has since the beginning.
        var lastEnd: UInt64 = 0
        /// Whether all balancers that ask regularly know that the server is draining.
        var isNoticed = true
    }

    let began: UInt64
    /// No later than this.
    let end: UInt64
    /// So long nothing has to have run, and all balancers have to know. 0: nobody else sends requests, so it is enough
    /// that nothing runs.
    let quiet: UInt64

    /// - Returns: whether to wait on.
    func continues(_ look: Look, now: UInt64) -> Bool {
        guard now < end else { return false }
        return look.running > 0 || quiet > 0 && (now -| max(began, look.lastEnd) < quiet || !look.isNoticed)
    }
}
