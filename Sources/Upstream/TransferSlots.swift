import CachePolicy
import HTTPModel
import Synchronization

#if DEBUG
/// Counts what its thread holds.
typealias Mutex = CountedMutex
#endif

/// Limits the number of transfers at the same time, in all and for each host; shared by the clients of all loops.
///
/// - A transfer *has* a slot from when its host's addresses are known until its exchange has ended: a name for which no
///   server answers takes none.
/// - Transfers that *wait* get slots in order: playback before downloads, then the clients of the hosts in turn, then
///   first come, first served.
/// - One client has at most three quarters of all slots, and of a host's: the others are for others.
/// - Requests that are passed on have slots of their own (`passing`): how long they take is up to their clients.
/// - A *parked* transfer takes no slot: its owner has paused it. It resumes at once, even beyond the limit, because a
///   player may wait for it. Half as many as there are slots are parked; for one more, the one that was parked first
///   gives way, of those whose bytes can be requested again. If there is none, the paused transfer keeps its slot.
package final class TransferSlots: Sendable {
    package struct Limits: Sendable, Equatable {
        package var total: Int
        package var perHost: Int

        package init(total: Int = 256, perHost: Int = 64) {
            self.total = total
            self.perHost = perHost
        }

        /// What one client may have of so many.
        static func share(of limit: Int) -> Int { limit - limit / 4 } // no trap: a part of it
    }

    /// Who asks which host.
    struct Party: Hashable {
        let host: String
        /// nil for the proxy itself.
        let client: IPAddress?

        /// What the number of transfers of several parties is limited by.
        enum Bound: Hashable {
            case client(IPAddress)
            case party(Party)
            case host(String)
        }

        var bounds: [Bound] {
            let ofHost = Bound.host(host)
            return client.map { [.client($0), .party(self), ofHost] } ?? [ofHost]
        }
    }

    /// A place in the queue.
    package struct Ticket: Sendable, Equatable {
        fileprivate let number: UInt64
        fileprivate let party: Party
        fileprivate let priority: UpstreamRequest.Priority
    }

    private struct State {
        var taken: Taken
        /// The `wake` closures of waiting transfers.
        var lines = [UpstreamRequest.Priority: FairLine<@Sendable () -> Void>]()
        var waitingByHost: [String: Int] = [:]
        var lastNumber: UInt64 = 0
        /// By number.
        var parked: [UInt64: Parked] = [:]
        var takenByParked: Taken
    }

    private struct Parked {
        let party: Party
        let giveWay: (@Sendable () -> Void)?
    }

    /// How many of a limited number are taken, and by whom. A value.
    struct Taken {
        let limits: Limits
        private(set) var all = 0
        private var hosts: [String: Int] = [:]
        private var parties: [Party: Int] = [:]
        private var clients: [IPAddress: Int] = [:]

        init(_ limits: Limits) { self.limits = limits }

        /// Whether there is one more for somebody.
        func leaves(_ party: Party) -> Bool { all < limits.total && full(for: party) == nil }

        /// The first bound that somebody has reached.
        func full(for party: Party) -> Party.Bound? {
            // With so few in all, nobody can have.
            guard all >= Limits.share(of: min(limits.total, limits.perHost)) else { return nil }
            return party.bounds.first(where: isFull)
        }

        func isFull(_ bound: Party.Bound) -> Bool {
            switch bound {
            case .client(let client): clients[client, default: 0] >= Limits.share(of: limits.total)
            case .party(let party): parties[party, default: 0] >= Limits.share(of: limits.perHost)
            case .host(let host): hosts[host, default: 0] >= limits.perHost
            }
        }

        mutating func count(_ party: Party, by step: Int) {
            all += step // no trap: a number of transfers, or of threads
            hosts.count(party.host, by: step)
            guard let client = party.client else { return }
            clients.count(client, by: step)
            parties.count(party, by: step)
        }
    }

    package let limits: Limits
    /// For requests that are passed on: half as many.
    let passing: TransferSlots?
    private let state: Mutex<State>

    package convenience init(_ limits: Limits = Limits()) {
        let half = Limits(total: max(1, limits.total / 2), perHost: limits.perHost)
        self.init(limits, passing: TransferSlots(half, passing: nil))
    }

    private init(_ limits: Limits, passing: TransferSlots?) {
        self.limits = limits
        self.passing = passing
        let parked = Limits(total: max(1, limits.total / 2), perHost: .max)
        state = Mutex(State(taken: Taken(limits), takenByParked: Taken(parked)))
    }

    /// Requests a slot.
    /// - Parameters:
    ///   - client: for whom; nil for the proxy itself.
    ///   - wake: called on any thread when the slot is granted, if it is not granted at once.
    /// - Returns: nil if it is granted at once; otherwise the place in the queue, to be given back with `leave`.
    package func take(
        _ host: String, of client: IPAddress? = nil, _ priority: UpstreamRequest.Priority,
        wake: @escaping @Sendable () -> Void
    ) -> Ticket? {
        let party = Party(host: host, client: client)
        return state.withLock { state in
            if state.taken.leaves(party) {
                state.taken.count(party, by: 1)
                return nil
            }
            state.lastNumber += 1 // no trap: counts one at a time
            state.lines[priority, default: FairLine()].append(wake, state.lastNumber, for: party, state.taken)
            state.waitingByHost.count(host, by: 1)
            return Ticket(number: state.lastNumber, party: party, priority: priority)
        }
    }

    /// Gives up a place in the queue, or the slot that it has meanwhile become.
    package func leave(_ ticket: Ticket) {
        let waited = state.withLock { state in
            let waited = state.lines[ticket.priority]?.remove(ticket.number, for: ticket.party, state.taken) ?? false
            if waited { state.waitingByHost.count(ticket.party.host, by: -1) }
            return waited
        }
        if !waited { give(ticket.party.host, of: ticket.party.client) }
    }

    /// Frees a slot, at the end of a transfer or when it is parked.
    package func give(_ host: String, of client: IPAddress? = nil) {
        let woken = state.withLock { next(&$0, after: Party(host: host, client: client)) }
        for wake in woken { wake() }
    }

    /// Parks a transfer that has a slot, which it gives to others.
    /// - Parameter giveWay: has it end; nil if its bytes cannot be requested again. Called once at most, on any thread.
    /// - Returns: its number, for `unpark`; nil if it keeps its slot, as there are too many that cannot give way.
    package func park(_ host: String, of client: IPAddress?, giveWay: (@Sendable () -> Void)?) -> UInt64? {
        let party = Party(host: host, client: client)
        let (number, calls) = state.withLock { state -> (UInt64?, [@Sendable () -> Void]) in
            var calls: [@Sendable () -> Void] = []
            if !state.takenByParked.leaves(party) {
                // Of the client's own, if others have places left.
                let isFull = state.takenByParked.all >= state.takenByParked.limits.total
                let first = state.parked.filter {
                    $0.value.giveWay != nil && (isFull || $0.value.party.client == client)
                }.min { $0.key < $1.key }
                guard let (first, former) = first, let giveWay = former.giveWay else { return (nil, []) }
                calls.append(giveWay)
                state.parked[first] = nil
                state.takenByParked.count(former.party, by: -1)
            }
            state.lastNumber += 1 // no trap: counts one at a time
            state.parked[state.lastNumber] = Parked(party: party, giveWay: giveWay)
            state.takenByParked.count(party, by: 1)
            return (state.lastNumber, calls + next(&state, after: party))
        }
        for call in calls { call() }
        return number
    }

    /// A parked transfer resumes, or ends. Idempotent.
    package func unpark(_ number: UInt64) {
        state.withLock { state in
            guard let parked = state.parked.removeValue(forKey: number) else { return }
            state.takenByParked.count(parked.party, by: -1)
        }
    }

    /// Takes a slot for a parked transfer that resumes.
    package func takeAgain(_ host: String, of client: IPAddress? = nil) {
        state.withLock { $0.taken.count(Party(host: host, client: client), by: 1) }
    }

    /// Whether somebody waits for a slot that a transfer from this host has.
    package func isAwaited(_ host: String) -> Bool {
        state.withLock { state in
            state.waitingByHost[host] != nil || state.taken.all >= limits.total && !state.waitingByHost.isEmpty
        }
    }

    /// The number of transfers that have a slot, and of those that wait for one.
    package var count: (open: Int, waiting: Int) {
        state.withLock { state in (state.taken.all, state.lines.values.reduce(0) { $0 + $1.count }) }
    }

    /// Whether more than an eighth of the slots are taken, or of those for what is passed on.
    var isCrowded: Bool { state.withLock { $0.taken.all > limits.total / 8 } || passing?.isCrowded == true }

    /// How many have a slot, and how many are parked, those that are passed on included.
    package var usage: (open: Int, parked: Int) {
        let own = state.withLock { ($0.taken.all, $0.parked.count) }, passed = passing?.usage ?? (open: 0, parked: 0)
        return (own.0 + passed.open, own.1 + passed.parked) // no trap: numbers of transfers
    }

    /// Gives the slot that somebody had to whoever is next.
    private func next(_ state: inout State, after former: Party) -> [@Sendable () -> Void] {
        state.taken.count(former, by: -1)
        guard !state.lines.isEmpty else { return [] }
        var next: [@Sendable () -> Void] = []
        for priority in UpstreamRequest.Priority.allCases {
            // Taken out meanwhile, because with a second reference each change would copy the whole queue.
            guard var line = state.lines.removeValue(forKey: priority) else { continue }
            line.hasRoom(within: former.bounds, state.taken)
            while state.taken.all < limits.total, let (party, wake) = line.next(state.taken) {
                state.taken.count(party, by: 1)
                state.waitingByHost.count(party.host, by: -1)
                next.append(wake)
            }
            if line.count > 0 { state.lines[priority] = line }
        }
        return next
    }
}

extension Dictionary where Value == Int {
    /// Counts a key, and forgets it at 0.
    mutating func count(_ key: Key, by step: Int) {
        guard let place = index(forKey: key) else { return self[key] = step }
        values[place] += step // no trap: a number of transfers, or of threads
        if values[place] == 0 { remove(at: place) }
    }
}
