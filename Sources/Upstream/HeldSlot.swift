import CachePolicy

/// One transfer's slot (`TransferSlots`), from joining the queue to the end of the exchange. Loop-bound.
struct HeldSlot {
    private enum State {
        case none
        case waiting(TransferSlots.Ticket)
        /// The host's slot.
        case held(String)
        /// Its number among those that are parked.
        case parked(String, UInt64)
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

    /// A paused transfer gives its slot to others, unless too many have.
    /// - Parameter giveWay: has it end, so that others may be parked; nil if its bytes cannot be requested again.
    ///   Called on any thread.
    mutating func park(giveWay: (@Sendable () -> Void)?) {
        guard case .held(let host) = state, let number = slots.park(host, of: client, giveWay: giveWay) else { return }
        state = .parked(host, number)
    }

    /// A parked transfer gets a slot at once when it resumes.
    mutating func resume() {
        guard case .parked(let host, let number) = state else { return }
        state = .held(host)
        slots.unpark(number)
        slots.takeAgain(host, of: client)
    }

    /// Whether it is held, and somebody waits for it.
    var isAwaited: Bool { if case .held(let host) = state { slots.isAwaited(host) } else { false } }

    /// Gives up the slot or the place in the queue. Idempotent.
    mutating func leave() {
        switch state {
        case .none: break
        case .parked(_, let number): slots.unpark(number)
        case .waiting(let ticket): slots.leave(ticket)
        case .held(let host): slots.give(host, of: client)
        }
        state = .none
    }
}
