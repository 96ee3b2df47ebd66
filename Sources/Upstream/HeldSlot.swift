import CachePolicy

/// One transfer's slot (`TransferSlots`), from joining the queue to the end of the exchange. Loop-bound.
struct HeldSlot {
    private enum State {
        case none
        case waiting(TransferSlots.Ticket)
        /// The host's slot.
        case held(String)
        case parked(String)
    }

    private let slots: TransferSlots
    private let client: IPAddress?
    private var state = State.none

    init(_ slots: TransferSlots, of client: IPAddress?) { (self.slots, self.client) = (slots, client) }

    /// Requests a slot for a host.
    /// - Parameter wake: called on any thread when the slot is granted, if it is not granted at once; then call `came`.
    /// - Returns: whether it was granted at once.
    mutating func take(
        _ host: String, _ priority: UpstreamRequest.Priority, wake: @escaping @Sendable () -> Void
    ) -> Bool {
        guard let ticket = slots.take(host, of: client, priority, wake: wake) else {
            state = .held(host)
            return true
        }
        state = .waiting(ticket)
        return false
    }

    /// Records that the requested slot was granted.
    mutating func came(for host: String) { state = .held(host) }

    /// A paused transfer gives its slot to others, and gets one back at once when it resumes.
    mutating func park(_ isPaused: Bool) {
        switch state {
        case .held(let host) where isPaused:
            state = .parked(host)
            slots.give(host, of: client)
        case .parked(let host) where !isPaused:
            state = .held(host)
            slots.takeAgain(host, of: client)
        case .none, .waiting, .held, .parked: break
        }
    }

    /// Whether it is held, and somebody waits for it.
    var isAwaited: Bool { if case .held(let host) = state { slots.isAwaited(host) } else { false } }

    /// Gives up the slot or the place in the queue. Idempotent.
    mutating func leave() {
        switch state {
        case .none, .parked: break
        case .waiting(let ticket): slots.leave(ticket)
        case .held(let host): slots.give(host, of: client)
        }
        state = .none
    }
}
