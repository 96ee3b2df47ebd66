import Synchronization

/// How many transfers run at the same time, in all and to one host; shared by the clients of all loops.
///
/// - A transfer *has* a slot from before its name is looked up until its exchange has ended.
/// - Who *waits* for one gets it in turn: all who play before all downloads, then host by host, then in the order in which they came.
/// - A transfer that is *parked* takes none: its owner has paused it, and it costs nobody anything. When it goes on, it does so at once,
///   even where there are then more than the limit: it would hold up somebody who plays.
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

    private struct Waiter {
        let number: UInt64
        let wake: @Sendable () -> Void
    }

    private struct Line {
        /// In turn.
        var hosts: [String] = []
        var waiters: [String: [Waiter]] = [:]

        mutating func append(_ waiter: Waiter, for host: String) {
            if waiters[host] == nil { hosts.append(host) }
            waiters[host, default: []].append(waiter)
        }

        /// The first of the first host that may have one more. That host goes to the end.
        mutating func next(where mayHave: (String) -> Bool) -> (host: String, waiter: Waiter)? {
            guard let place = hosts.firstIndex(where: mayHave) else { return nil }
            let host = hosts.remove(at: place)
            guard var line = waiters[host], !line.isEmpty else { return nil }
            let waiter = line.removeFirst()
            waiters[host] = line.isEmpty ? nil : line
            if !line.isEmpty { hosts.append(host) }
            return (host, waiter)
        }

        /// - Returns: whether it was there.
        mutating func remove(_ ticket: Ticket) -> Bool {
            guard var line = waiters[ticket.host], let place = line.firstIndex(where: { $0.number == ticket.number }) else { return false }
            line.remove(at: place)
            waiters[ticket.host] = line.isEmpty ? nil : line
            if line.isEmpty { hosts.removeAll { $0 == ticket.host } }
            return true
        }
    }

    private struct State {
        var open = 0
        var openByHost: [String: Int] = [:]
        var lines = [UpstreamRequest.Priority: Line]()
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
    package func take(_ host: String, _ priority: UpstreamRequest.Priority, wake: @escaping @Sendable () -> Void) -> Ticket? {
        state.withLock { state in
            if state.open < limits.total, state.openByHost[host, default: 0] < limits.perHost {
                state.take(host)
                return nil
            }
            state.lastNumber += 1
            state.lines[priority, default: Line()].append(Waiter(number: state.lastNumber, wake: wake), for: host)
            return Ticket(number: state.lastNumber, host: host, priority: priority)
        }
    }

    /// Gives up a place in the line, or the slot that has come of it meanwhile.
    package func leave(_ ticket: Ticket) {
        let waited = state.withLock { $0.lines[ticket.priority]?.remove(ticket) ?? false }
        if !waited { give(ticket.host) }
    }

    /// The end of a transfer, or its parking.
    package func give(_ host: String) {
        let waiters = state.withLock { state -> [Waiter] in
            state.give(host)
            return next(&state)
        }
        for waiter in waiters { waiter.wake() }
    }

    /// What was parked goes on.
    package func takeAgain(_ host: String) {
        state.withLock { $0.take(host) }
    }

    /// Transfers that have a slot, and that wait for one.
    package var count: (open: Int, waiting: Int) {
        state.withLock { state in (state.open, state.lines.values.reduce(0) { $0 + $1.waiters.values.reduce(0) { $0 + $1.count } }) }
    }

    private func next(_ state: inout State) -> [Waiter] {
        var next: [Waiter] = []
        for priority in UpstreamRequest.Priority.allCases {
            guard var line = state.lines.removeValue(forKey: priority) else { continue }
            while state.open < limits.total, let (host, waiter) = line.next(where: { state.openByHost[$0, default: 0] < limits.perHost }) {
                state.take(host)
                next.append(waiter)
            }
            if !line.hosts.isEmpty { state.lines[priority] = line }
        }
        return next
    }
}
