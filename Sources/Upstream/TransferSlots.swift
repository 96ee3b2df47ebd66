import Synchronization

/// Limits the number of transfers at the same time, in all and for each host; shared by the clients of all loops.
///
/// - A transfer *has* a slot from before its name is looked up until its exchange has ended.
/// - Transfers that *wait* get slots in order: playback before downloads, then the hosts in turn, then first come,
///   first served.
/// - A *parked* transfer takes no slot: its owner has paused it, so it costs nothing. It resumes at once, even beyond
///   the limit, because a player may wait for it.
package final class TransferSlots: Sendable {
    package struct Limits: Sendable, Equatable {
        package var total: Int
        package var perHost: Int

        package init(total: Int = 256, perHost: Int = 64) {
            self.total = total
            self.perHost = perHost
        }
    }

    /// A place in the queue.
    package struct Ticket: Sendable, Equatable {
        fileprivate let number: UInt64
        fileprivate let host: String
        fileprivate let priority: UpstreamRequest.Priority
    }

    private struct State {
        var open = 0
        var openByHost: [String: Int] = [:]
        /// The `wake` closures of waiting transfers, by host.
        var lines = [UpstreamRequest.Priority: FairLine<@Sendable () -> Void>]()
        var lastNumber: UInt64 = 0

        mutating func take(_ host: String) {
            open += 1
            openByHost[host, default: 0] += 1
        }

        mutating func give(_ host: String) {
            open -= 1
            let left = openByHost[host, default: 1] - 1
            openByHost[host] = left == 0 ? nil : left
        }
    }

    package let limits: Limits
    private let state = Mutex(State())

    package init(_ limits: Limits = Limits()) { self.limits = limits }

    /// Requests a slot.
    /// - Parameter wake: called on any thread when the slot is granted, if it is not granted at once.
    /// - Returns: nil if it is granted at once; otherwise the place in the queue, to be given back with `leave`.
    package func take(_ host: String, _ priority: UpstreamRequest.Priority, wake: @escaping @Sendable () -> Void)
        -> Ticket?
    {
        state.withLock { state in
            if state.open < limits.total, state.openByHost[host, default: 0] < limits.perHost {
                state.take(host)
                return nil
            }
            state.lastNumber += 1 // no trap: counts one at a time
            state.lines[priority, default: FairLine()].append(wake, state.lastNumber, for: host)
            return Ticket(number: state.lastNumber, host: host, priority: priority)
        }
    }

    /// Gives up a place in the queue, or the slot that it has meanwhile become.
    package func leave(_ ticket: Ticket) {
        let waited = state.withLock { $0.lines[ticket.priority]?.remove(ticket.number, for: ticket.host) ?? false }
        if !waited { give(ticket.host) }
    }

    /// Frees a slot, at the end of a transfer or when it is parked.
    package func give(_ host: String) {
        let woken = state.withLock { state in
            state.give(host)
            return next(&state)
        }
        for wake in woken { wake() }
    }

    /// Takes a slot for a parked transfer that resumes.
    package func takeAgain(_ host: String) {
        state.withLock { $0.take(host) }
    }

    /// The number of transfers that have a slot, and of those that wait for one.
    package var count: (open: Int, waiting: Int) {
        state.withLock { state in (state.open, state.lines.values.reduce(0) { $0 + $1.count }) }
    }

    private func next(_ state: inout State) -> [@Sendable () -> Void] {
        var next: [@Sendable () -> Void] = []
        for priority in UpstreamRequest.Priority.allCases {
            // Taken out meanwhile, because with a second reference each change would copy the whole queue.
            guard var line = state.lines.removeValue(forKey: priority) else { continue }
            while state.open < limits.total,
                let (host, wake) = line.next(where: { state.openByHost[$0, default: 0] < limits.perHost })
            {
                state.take(host)
                next.append(wake)
            }
            if line.count > 0 { state.lines[priority] = line }
        }
        return next
    }
}
