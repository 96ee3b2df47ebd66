import HTTPModel

/// When a server that is draining has done so. A value; times are monotonic, in nanoseconds.
struct DrainProgress {
    /// What the loops say.
    struct Look {
        /// Answers that are being sent and have an end.
        var running = 0
        /// When the last one ended; 0 if none has since the beginning.
        var lastEnd: UInt64 = 0
    }

    let began: UInt64
    /// No later than this.
    let end: UInt64
    /// So long nothing has to have run: by then a balancer has seen that the server is draining, and sends no more.
    let quiet: UInt64

    /// - Returns: whether to wait on.
    func continues(_ look: Look, now: UInt64) -> Bool {
        guard now < end else { return false }
        return look.running > 0 || now -| max(began, look.lastEnd) < quiet
    }
}
