import Synchronization

/// What was read from generations, such as a parsed playlist, for all who need it as long as one of them keeps it. From
/// any thread.
package final class SharedReadings: Sendable {
    private struct Reading {
        weak var value: (any AnyObject & Sendable)?
    }

    private struct State {
        var readings: [GenerationID: Reading] = [:]
        /// How many there may be before those that nobody keeps are removed.
        var most = 64
    }

    private let state = Mutex(State())

    package subscript(_ id: GenerationID) -> (any AnyObject & Sendable)? {
        get { state.withLock { $0.readings[id]?.value } }
        set {
            state.withLock { state in
                state.readings[id] = Reading(value: newValue)
                guard state.readings.count > state.most else { return }
                state.readings = state.readings.filter { $0.value.value != nil }
                state.most = max(64, 2 * state.readings.count) // no trap: what is in memory
            }
        }
    }
}
