import CachePolicy
import Downloads
import Synchronization

/// Time that stands still until a test moves it.
final class ManualClock: DownloadClock {
    private struct State {
        var seconds = 0.0
        var setBack = 0.0
        var wake: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    private let start: Double
    let local: LocalTime

    /// - Parameter start: seconds since 1970; by default Tuesday, 2023-11-14, 22:13:20.
    init(start: Double = 1_700_000_000, local: LocalTime = .utc) { (self.start, self.local) = (start, local) }

    var now: Double { start + state.withLock { $0.seconds - $0.setBack } }
    var monotonic: Double { 5000 + state.withLock { $0.seconds } }

    func tick(_ isWanted: Bool, _ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.wake = isWanted ? wake : nil }
    }

    /// Whether somebody wants to be woken.
    var isTicking: Bool { state.withLock { $0.wake != nil } }

    /// The wall clock is set to an earlier time.
    func set(back seconds: Double) { state.withLock { $0.setBack += seconds } }

    /// Wakes whoever wants to be woken, once, so many seconds later.
    func advance(_ seconds: Double) {
        let wake = state.withLock { state in
            state.seconds += seconds
            return state.wake
        }
        wake?()
    }
}
