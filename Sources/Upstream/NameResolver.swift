import CCurl
import Glibc
import Synchronization

/// Looks names up, for the clients of all loops: a few at a time, and each name once however many wait for it.
///
/// Curl would start a thread and open two sockets for each request whose name it does not know, without a limit. What is found goes to curl
/// with the request (`CURLOPT_RESOLVE`); the address policy has its say where curl connects, as ever.
package final class NameResolver: Sendable {
    /// The addresses of a name as text, in the order in which they are to be tried; empty where it has none.
    package typealias LookUp = @Sendable (String) -> [String]

    package enum Known: Equatable {
        case addresses([String])
        /// `waiter` will be called, on some thread.
        case waiting(Ticket)
    }

    /// A request's place among those who wait for a name.
    package struct Ticket: Equatable, Sendable {
        fileprivate let name: String
        fileprivate let number: UInt64
    }

    private struct Answer {
        let addresses: [String]
        /// Nanoseconds of a monotonic clock.
        let at: UInt64
    }

    private struct State {
        var answers: [String: Answer] = [:]
        /// Names that are being looked up or wait for a thread, and who waits for them: nobody where an answer is renewed.
        var waiting: [String: [UInt64: @Sendable ([String]) -> Void]] = [:]
        var queue: [String] = []
        var threads = 0
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())
    private let lookUp: LookUp
    private let nanoseconds: @Sendable () -> UInt64

    /// Names that are looked up at the same time. One that nobody answers for takes ten seconds or more.
    package static let threadLimit = 16
    private static let answerLimit = 512
    /// Seconds for which an answer is taken as it is, as curl does.
    private static let fresh: UInt64 = 60
    /// And after that, while it is renewed: what plays does not wait for a name server.
    private static let usable: UInt64 = 600

    /// - Parameter lookUp: may block.
    package init(nanoseconds: @escaping @Sendable () -> UInt64, lookUp: @escaping LookUp = { SystemNames.addresses(of: $0) }) {
        self.lookUp = lookUp
        self.nanoseconds = nanoseconds
    }

    /// The addresses of a name, at once where they are known.
    /// - Parameter waiter: called once where they are not, unless `cancel` comes first; with nothing where there is no such name.
    package func resolve(_ name: String, waiter: @escaping @Sendable ([String]) -> Void) -> Known {
        let now = nanoseconds()
        let (known, startsThread) = state.withLock { state -> (Known, Bool) in
            if let answer = state.answers[name] {
                let age = (now - min(answer.at, now)) / 1_000_000_000
                if age < Self.fresh { return (.addresses(answer.addresses), false) }
                if age < Self.usable { return (.addresses(answer.addresses), Self.enqueue(name, &state)) }
                state.answers[name] = nil
            }
            state.lastNumber += 1
            let ticket = Ticket(name: name, number: state.lastNumber)
            let startsThread = Self.enqueue(name, &state)
            state.waiting[name, default: [:]][ticket.number] = waiter
            return (.waiting(ticket), startsThread)
        }
        if startsThread { startThread() }
        return known
    }

    /// Nobody waits any more at this place. A name for which nobody waits is not looked up, unless that has begun.
    package func cancel(_ ticket: Ticket) {
        state.withLock { state in
            state.waiting[ticket.name]?[ticket.number] = nil
            guard state.waiting[ticket.name]?.isEmpty == true, let place = state.queue.firstIndex(of: ticket.name) else { return }
            state.queue.remove(at: place)
            state.waiting[ticket.name] = nil
        }
    }

    /// - Returns: whether a thread is to be started for it.
    private static func enqueue(_ name: String, _ state: inout State) -> Bool {
        guard state.waiting[name] == nil else { return false }
        state.waiting[name] = [:]
        state.queue.append(name)
        guard state.threads < threadLimit else { return false }
        state.threads += 1
        return true
    }

    private func startThread() {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let box = Unmanaged.passRetained(self)
        let status = pthread_create(&thread, &attributes, { context in
            Unmanaged<NameResolver>.fromOpaque(context!).takeRetainedValue().work()
            return nil
        }, box.toOpaque())
        guard status != 0 else { return }
        box.release()
        // No thread to be had: those who wait are told so, and may come again.
        while let name = nextName() { finish(name, []) }
    }

    /// Until nothing is left to look up.
    private func work() {
        while let name = nextName() { finish(name, lookUp(name)) }
    }

    private func nextName() -> String? {
        state.withLock { state in
            guard !state.queue.isEmpty else {
                state.threads -= 1
                return nil
            }
            return state.queue.removeFirst()
        }
    }

    private func finish(_ name: String, _ addresses: [String]) {
        let now = nanoseconds()
        let waiters = state.withLock { state in
            if !addresses.isEmpty {
                if state.answers.count >= Self.answerLimit, let oldest = state.answers.min(by: { $0.value.at < $1.value.at }) {
                    state.answers[oldest.key] = nil
                }
                state.answers[name] = Answer(addresses: addresses, at: now)
            }
            return state.waiting.removeValue(forKey: name) ?? [:]
        }
        for waiter in waiters.values { waiter(addresses) }
    }
}

/// What this machine says of names: its hosts file, its name servers, whatever else it is set up with.
package enum SystemNames {
    /// Of a name with more addresses the first ones are enough.
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
            guard getnameinfo(address, entry.ai_addrlen, buffer.baseAddress!, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
            return String(cString: buffer.baseAddress!)
        }
        // With a zone it means something on one link only, and curl cannot be told.
        return text.flatMap { $0.contains("%") ? nil : $0 }
    }
}
