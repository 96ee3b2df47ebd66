import CCurl
import CachePolicy
import EventIO
import Glibc
import HTTPModel
import Synchronization

/// Looks up names for all loops and tunnels: a limited number at a time, and each name once however many wait for it.
///
/// curl would start a thread and open two sockets for each request with an unknown name, without a limit. The addresses
/// found here are passed to curl with the request (`CURLOPT_RESOLVE`); the address policy is still checked when curl
/// connects.
///
/// A *zone* is the last two labels of a name. Zones take turns, and each gets only a few threads, so that one with
/// unresponsive name servers does not delay the others. Nor does a client that asks for names of very many zones: one
/// client has at most three quarters of the threads, in all and for a zone.
package final class NameResolver: Sendable {
    /// The addresses of a name as text, in the order in which to try them; empty if it has none.
    package typealias LookUp = @Sendable (String) -> [String]

    package enum Known: Equatable {
        /// Empty if a recent look-up found none.
        case addresses([String])
        /// `waiter` will be called, on any thread.
        case waiting(Ticket)
    }

    /// A place among the requests that wait for a name.
    package struct Ticket: Equatable, Sendable {
        fileprivate let name: String
        fileprivate let client: IPAddress?
        fileprivate let number: UInt64
    }

    /// Times are nanoseconds of a monotonic clock.
    private struct Answer {
        let addresses: [String]
        let at: UInt64
        /// The address that connected last; it is the first.
        let connected: String?

        /// - Parameter preferred: put first if it is among the others: name servers give the same order again, and an
        ///   address that is silent holds up each connection.
        init(_ addresses: [String], preferring preferred: String?, at time: UInt64) {
            connected = preferred.flatMap { addresses.contains($0) ? $0 : nil }
            self.addresses = [connected].compactMap(\.self) + addresses.filter { [connected] in $0 != connected }
            at = time
        }
    }

    /// A name that is being looked up, or waits for a thread.
    private struct Search {
        /// By client: it waits in the line of each, and the first whose turn comes has it looked up for all.
        var requesters: [IPAddress?: Requester] = [:]
        /// Whether a thread has taken it.
        var hasBegun = false
        var isRemembered = true
    }

    private struct Requester {
        /// Empty if the look-up only renews an answer.
        var waiters: [UInt64: @Sendable ([String]) -> Void] = [:]
        /// Its number in the line.
        let place: UInt64
    }

    private struct State {
        var answers: [String: Answer] = [:]
        /// Until when names count as having no address.
        var failures: [String: UInt64] = [:]
        var searches: [String: Search] = [:]
        /// Names that wait for a thread.
        var line = FairLine<String>()
        var threads = 0
        /// By zone.
        var running = TransferSlots.Taken(.init(total: threadLimit, perHost: threadsOfAZone))
        var lastNumber: UInt64 = 0

        mutating func newNumber() -> UInt64 {
            lastNumber += 1 // no trap: one for each that waits, of 64 bits
            return lastNumber
        }
    }

    private let state = Mutex(State())
    private let lookUp: LookUp
    private let nanoseconds: @Sendable () -> UInt64

    /// The most look-ups at the same time. A name that no server answers for takes ten seconds or more.
    package static let threadLimit = 32
    /// Of these, the most in one zone.
    package static let threadsOfAZone = 4
    /// The number of answers, and of failures, to remember.
    private static let answerLimit = 512
    /// How long an answer is used as it is; curl's own cache does the same.
    private static let fresh: UInt64 = 60_000_000_000
    /// How long it is used after that while it is being renewed, so that playback does not wait for a name server.
    private static let usable: UInt64 = 600_000_000_000
    /// The time for which a failure is remembered: as long as the look-up took, within these bounds. A failure that was
    /// found quickly can be checked again soon.
    private static let believed: ClosedRange<UInt64> = 1_000_000_000...30_000_000_000

    /// - Parameter lookUp: may block.
    package init(
        nanoseconds: @escaping @Sendable () -> UInt64, lookUp: @escaping LookUp = { SystemNames.addresses(of: $0) }
    ) {
        self.lookUp = lookUp
        self.nanoseconds = nanoseconds
    }

    /// Resolves a name, at once if its addresses are known.
    /// - Parameters:
    ///   - client: for whom; nil for the proxy itself.
    ///   - waiter: otherwise called once, unless `cancel` is called first; with an empty array if there is no such
    ///     name.
    package func resolve(
        _ name: String, for client: IPAddress? = nil, waiter: @escaping @Sendable ([String]) -> Void
    ) -> Known {
        let now = nanoseconds()
        let (known, startsThread) = state.withLock { state -> (Known, Bool) in
            let hasFailed = state.failures[name].map { now < $0 } ?? false
            if let answer = state.answers[name] {
                let age = now -| answer.at
                if age < Self.fresh || age < Self.usable && hasFailed { return (.addresses(answer.addresses), false) }
                if age < Self.usable {
                    return (.addresses(answer.addresses), Self.enqueue(name, for: client, &state))
                }
            }
            if hasFailed { return (.addresses([]), false) }
            let startsThread = Self.enqueue(name, for: client, &state)
            let ticket = Ticket(name: name, client: client, number: state.newNumber())
            state.searches[name]?.requesters[client]?.waiters[ticket.number] = waiter
            return (.waiting(ticket), startsThread)
        }
        if startsThread { startThread() }
        return known
    }

    /// The addresses that were found lately; nil if the name would have to be looked up.
    func known(_ name: String) -> [String]? {
        let now = nanoseconds()
        return state.withLock { state in
            state.answers[name].flatMap { now -| $0.at < Self.usable ? $0.addresses : nil }
        }
    }

    /// A connection was made to one of a name's addresses, which is from now on the first.
    package func connected(_ name: String, at address: String) {
        state.withLock { state in
            guard let answer = state.answers[name], answer.addresses.contains(address) else { return }
            state.answers[name] = Answer(answer.addresses, preferring: address, at: answer.at)
        }
    }

    /// Drops what is remembered of a name. A running look-up continues.
    package func forget(_ name: String) { state.withLock { ($0.answers[name], $0.failures[name]) = (nil, nil) } }

    /// Drops everything that is remembered, as it may hold for another network only. What is being looked up is for
    /// those who wait for it alone.
    package func forgetAll() {
        state.withLock { state in
            (state.answers, state.failures) = ([:], [:])
            for name in state.searches.keys { state.searches[name]?.isRemembered = false }
        }
    }

    /// Gives up a place. A name that nobody waits for is not looked up, unless that has begun.
    package func cancel(_ ticket: Ticket) {
        state.withLock { state in
            state.searches[ticket.name]?.requesters[ticket.client]?.waiters[ticket.number] = nil
            guard let search = state.searches[ticket.name], !search.hasBegun,
                let requester = search.requesters[ticket.client], requester.waiters.isEmpty
            else { return }
            state.line.remove(
                requester.place, for: TransferSlots.Party(host: Self.zone(of: ticket.name), client: ticket.client),
                state.running)
            state.searches[ticket.name] = nil
            guard search.requesters.count > 1 else { return }
            state.searches[ticket.name] = search
            state.searches[ticket.name]?.requesters[ticket.client] = nil
        }
    }

    /// Whether the look-up is running: if it takes long, its servers are to blame; otherwise too many other names are.
    package func hasBegun(_ ticket: Ticket) -> Bool {
        state.withLock { state in state.searches[ticket.name]?.hasBegun ?? true }
    }

    /// The last two labels, without counting a dot at the end.
    private static func zone(of name: String) -> String {
        name.split(separator: ".").suffix(2).joined(separator: ".")
    }

    /// - Returns: whether to start a thread for it.
    private static func enqueue(_ name: String, for client: IPAddress?, _ state: inout State) -> Bool {
        guard state.searches[name]?.requesters[client] == nil else { return false }
        let place = state.newNumber(), party = TransferSlots.Party(host: zone(of: name), client: client)
        state.searches[name, default: Search()].requesters[client] = Requester(place: place)
        guard state.searches[name]?.hasBegun == false else { return false }
        state.line.append(name, place, for: party, state.running)
        // Otherwise a running thread takes it when it has finished its last.
        guard state.threads < threadLimit, state.running.leaves(party) else { return false }
        state.threads += 1
        return true
    }

    private func startThread() {
        guard DetachedThread.start("names", { self.work() }) != 0 else { return }
        // No thread can be started: let all waiting requests fail; they may try again.
        while let (name, party) = next() { finish(name, [], failsUntil: nil, for: party) }
    }

    /// Runs until the queue is empty.
    private func work() {
        while let (name, party) = next() {
            let start = nanoseconds()
            let addresses = lookUp(name)
            let now = nanoseconds()
            let taken = min(max(now -| start, Self.believed.lowerBound), Self.believed.upperBound)
            finish(name, addresses, failsUntil: addresses.isEmpty ? now +| taken : nil, for: party)
        }
    }

    private func next() -> (name: String, party: TransferSlots.Party)? {
        state.withLock { state in
            guard let (party, name) = state.line.next(state.running) else {
                state.threads -= 1
                return nil
            }
            state.running.count(party, by: 1)
            state.searches[name]?.hasBegun = true
            state.searches[name]?.isRemembered = true
            for (client, requester) in state.searches[name]?.requesters ?? [:] where client != party.client {
                state.line.remove(
                    requester.place, for: TransferSlots.Party(host: party.host, client: client), state.running)
            }
            return (name, party)
        }
    }

    private func finish(_ name: String, _ addresses: [String], failsUntil: UInt64?, for party: TransferSlots.Party) {
        let now = nanoseconds()
        let (requesters, ordered) = state.withLock { state in
            let answer = Answer(addresses, preferring: state.answers[name]?.connected, at: now)
            state.running.count(party, by: -1)
            state.line.hasRoom(within: party.bounds, state.running)
            let search = state.searches.removeValue(forKey: name)
            guard search?.isRemembered ?? true else { return (search?.requesters ?? [:], addresses) }
            state.failures[name] = failsUntil
            if state.failures.count > Self.answerLimit, let first = state.failures.min(by: { $0.value < $1.value }) {
                state.failures[first.key] = nil
            }
            if !addresses.isEmpty {
                state.answers[name] = answer
                if state.answers.count > Self.answerLimit,
                    let oldest = state.answers.min(by: { $0.value.at < $1.value.at })
                {
                    state.answers[oldest.key] = nil
                }
            }
            return (search?.requesters ?? [:], answer.addresses)
        }
        for requester in requesters.values { for waiter in requester.waiters.values { waiter(ordered) } }
    }
}

extension NameResolver {
    /// The system's resolver: hosts file, name servers and whatever else is configured.
    package enum SystemNames {
        /// The first addresses are enough.
        private static let mostAddresses = 16

        /// Blocks.
        package static func addresses(of name: String) -> [String] {
            var hints = addrinfo()
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            var first: UnsafeMutablePointer<addrinfo>?
            guard getaddrinfo(name, nil, &hints, &first) == 0 else { return [] }
            defer { freeaddrinfo(first) }
            var addresses: [String] = []
            var next = first
            while let entry = next?.pointee, addresses.count < mostAddresses {
                if let text = text(of: entry), !addresses.contains(text) { addresses.append(text) }
                next = entry.ai_next
            }
            return addresses
        }

        private static func text(of entry: addrinfo) -> String? {
            guard let address = entry.ai_addr else { return nil }
            let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { buffer -> String? in
                let size = socklen_t(buffer.count) // no trap: NI_MAXHOST
                let status = getnameinfo(address, entry.ai_addrlen, buffer.baseAddress!, size, nil, 0, NI_NUMERICHOST)
                guard status == 0 else { return nil }
                return String(cString: buffer.baseAddress!)
            }
            // An address with a zone index is valid on one link only, and cannot be passed to curl.
            return text.flatMap { $0.contains("%") ? nil : $0 }
        }
    }
}
