import EventIO

/// How long a player waits for its first byte.
///
/// A fetch tries a silent origin several times, waiting `stall_timeout` each time. A player that has received
/// nothing gets an error, or the stored bytes, within one and a half of these timeouts.
enum Patience {
    case fresh
    case running(LoopTimer)
    /// The wait is over; there is no second one.
    case spent

    /// How many stall timeouts it lasts.
    static let stalls = 1.5
    /// In seconds: anything shorter would expire too easily on a busy machine.
    private static let shortest = 1.0

    /// Starts the timer, unless it runs.
    /// - Returns: whether the player may wait.
    mutating func begin(
        _ seconds: @autoclosure () -> Double, on loop: EventLoop, then lose: @escaping () -> Void
    ) -> Bool {
        switch self {
        case .spent: return false
        case .running: return true
        case .fresh:
            let timer = LoopTimer(on: loop, handler: lose)
            timer.schedule(afterSeconds: max(Self.shortest, seconds()))
            self = .running(timer)
            return true
        }
    }

    func end() {
        if case .running(let timer) = self { timer.cancel() }
    }
}
