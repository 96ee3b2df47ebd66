import Downloads
import Synchronization

/// Time that stands still until a test moves it.
final class ManualClock: DownloadClock {
    private struct State {
        var seconds = 0.0
        var wake: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var now: Double { 1_700_000_000 + state.withLock { $0.seconds } }
    var monotonic: Double { 5000 + state.withLock { $0.seconds } }

    func tick(_ isWanted: Bool, _ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.wake = isWanted ? wake : nil }
    }

    /// Whether somebody wants to be woken.
    var isTicking: Bool { state.withLock { $0.wake != nil } }

    /// Wakes whoever wants to be woken, once, so many seconds later.
    func advance(_ seconds: Double) {
        let wake = state.withLock { state in
            state.seconds += seconds
            return state.wake
        }
        wake?()
    }
}
