import Synchronization

/// How many transfers run at the same time, in all and to one host; shared by the clients of all loops.
///
/// - A transfer *has* a slot from before its name is looked up until its exchange has ended.
/// - Who *waits* for one gets it in turn: all who play before all downloads, then host by host, then in the order in
///   which they came.
/// - A transfer that is *parked* takes none: its owner has paused it, and it costs nobody anything. When it goes on, it
///   does so at once, even where there are then more than the limit: it would hold up somebody who plays.
package final class TransferSlots: Sendable {
    package struct Limits: Sendable, Equatable {
        package var total: Int
        package var perHost: Int

        package init(total: Int = 256, perHost: Int = 64) {
            self.total = total
            self.perHost = perHost
        }
    }

    /// A place in the line.
    package struct Ticket: Sendable, Equatable {
        fileprivate let number: UInt64
        fileprivate let host: String
        fileprivate let priority: UpstreamRequest.Priority
    }

    private struct State {
        var open = 0
        var openByHost: [String: Int] = [:]
        /// What wakes them, by host.
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

    /// Asks for a slot.
    /// - Parameter wake: called when it is there, on some thread, where it is not there at once.
    /// - Returns: nil where it is there; else the place in the line, to be given back by `leave`.
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

    /// Gives up a place in the line, or the slot that has come of it meanwhile.
    package func leave(_ ticket: Ticket) {
        let waited = state.withLock { $0.lines[ticket.priority]?.remove(ticket.number, for: ticket.host) ?? false }
        if !waited { give(ticket.host) }
    }

    /// The end of a transfer, or its parking.
    package func give(_ host: String) {
        let woken = state.withLock { state in
            state.give(host)
            return next(&state)
        }
        for wake in woken { wake() }
    }

    /// What was parked goes on.
    package func takeAgain(_ host: String) {
        state.withLock { $0.take(host) }
    }

    /// Transfers that have a slot, and that wait for one.
    package var count: (open: Int, waiting: Int) {
        state.withLock { state in (state.open, state.lines.values.reduce(0) { $0 + $1.count }) }
    }

    private func next(_ state: inout State) -> [@Sendable () -> Void] {
        var next: [@Sendable () -> Void] = []
        for priority in UpstreamRequest.Priority.allCases {
            // Taken out meanwhile: a second reference would make each change a copy of the whole line.
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
