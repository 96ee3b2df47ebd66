import EventIO

/// Until when a connection has to make progress, and since when it waits for a request. A value; times are of the
/// monotonic clock, in nanoseconds.
struct ConnectionTimes {
    /// When the connection is dropped unless it makes progress; nil while an answer is being sent, however long it
    /// takes.
    var deadline: UInt64?
    /// When the connection became idle; nil from the first byte of a request to the end of its answer.
    private(set) var idleSince: UInt64?
    /// Whether a request was answered on this connection, so that its client can do without it.
    private(set) var hasAnswered = false

    /// The connection was accepted, and its first request has yet to arrive.
    init(_ now: UInt64, deadline: UInt64) { (idleSince, self.deadline) = (now, deadline) }

    /// Whether the connection has been open for no longer than since then, and its first request has yet to arrive.
    func isNew(since newest: UInt64) -> Bool { !hasAnswered && idleSince ?? .max >= newest }

    /// The first bytes of a request have arrived.
    /// - Parameter deadline: for the rest of its head.
    mutating func headBegan(_ deadline: UInt64) {
        guard idleSince != nil else { return }
        (idleSince, self.deadline) = (nil, deadline)
    }

    /// The head of a request is complete.
    mutating func requestBegan() { (idleSince, deadline) = (nil, nil) }

    /// The answer was sent.
    /// - Parameter idle: the time for which it may be idle.
    mutating func requestEnded(_ idle: Range<UInt64>) {
        (idleSince, deadline, hasAnswered) = (idle.lowerBound, idle.upperBound, true)
    }
}
