/// One transfer's right to run (`TransferSlots`), from the place in the line to its end. Loop-bound.
struct HeldSlot {
    private enum State {
        case none
        case waiting(TransferSlots.Ticket)
        /// For a host.
        case held(String)
        case parked(String)
    }

    private let slots: TransferSlots
    private var state = State.none

    init(_ slots: TransferSlots) { self.slots = slots }

    /// Asks for a slot for a host.
    /// - Parameter wake: called when it is there, on some thread, where it is not there at once; `came` then takes it.
    /// - Returns: whether it is there.
    mutating func take(
        _ host: String, _ priority: UpstreamRequest.Priority, wake: @escaping @Sendable () -> Void
    ) -> Bool {
        guard let ticket = slots.take(host, priority, wake: wake) else {
            state = .held(host)
            return true
        }
        state = .waiting(ticket)
        return false
    }

    /// What was waited for is there.
    mutating func came(for host: String) { state = .held(host) }

    /// What is paused takes no slot from others, and has it again at once when it goes on.
    mutating func park(_ isPaused: Bool) {
        switch state {
        case .held(let host) where isPaused:
            state = .parked(host)
            slots.give(host)
        case .parked(let host) where !isPaused:
            state = .held(host)
            slots.takeAgain(host)
        case .none, .waiting, .held, .parked: break
        }
    }

    /// The end of what needed it. Idempotent.
    mutating func leave() {
        switch state {
        case .none, .parked: break
        case .waiting(let ticket): slots.leave(ticket)
        case .held(let host): slots.give(host)
        }
        state = .none
    }
}
