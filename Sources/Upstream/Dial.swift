import CCurl
import CachePolicy
import EventIO
import Glibc
import HTTPModel

/// Connects to a host and port for a tunnel. The address policy of transfers applies: it is checked right before each
/// connection, when a name can no longer change its address. Loop-bound; created by `UpstreamClient.dial`.
///
/// A host's addresses are tried one after the other, without waiting long for any of them; the first connection wins
/// (RFC 8305).
package final class Dial {
    private let host: String
    private let port: UInt16
    private let policy: Current<AddressPolicy>
    private let resolver: NameResolver
    private let makeSocket: (Int32, Int32, Int32) -> Int32
    private let loop: EventLoop
    private let completion: (Result<Int32, UpstreamError>) -> Void
    /// Limits the whole dial.
    private var timer: LoopTimer?
    /// Runs until the next address is tried.
    private var pace: LoopTimer?
    private var lookUp: NameResolver.Ticket?
    private var left: [IPAddress] = []
    private var attempts: [Attempt] = []
    private var failure: UpstreamError
    private var isOver = false

    /// Seconds until the next address is tried in parallel (RFC 8305 §5).
    private static let paceSeconds = 0.25
    /// The most attempts at the same time: each takes a descriptor, and somebody else decides how many addresses a name
    /// has.
    private static let mostAttempts = 3

    private struct Attempt {
        let socket: Int32
        let watcher: SocketWatcher
    }

    fileprivate init(
        _ host: String, _ port: UInt16, for requester: IPAddress?, _ client: UpstreamClient,
        _ completion: @escaping (Result<Int32, UpstreamError>) -> Void
    ) {
        (self.host, self.port, self.completion) = (host, port, completion)
        (policy, resolver, makeSocket, loop) = (client.policy, client.resolver, client.makeSocket, client.loop)
        failure = .cannotResolve(host: host)
        timer = LoopTimer(on: loop) { [unowned self] in timeOut() }
        timer?.schedule(afterSeconds: client.settings.connectTimeout)
        pace = LoopTimer(on: loop) { [unowned self] in connectNext() }
        resolve(for: requester)
    }

    package func cancel() {
        isOver = true
        for timer in [timer, pace] { timer?.cancel() }
        (timer, pace) = (nil, nil)
        if let lookUp { resolver.cancel(lookUp) }
        lookUp = nil
        while let attempt = attempts.popLast() { drop(attempt, closes: true) }
    }

    // MARK: Addresses

    private func resolve(for requester: IPAddress?) {
        // The completion must not be called from within `init`.
        guard IPAddress(host) == nil else { return loop.afterCallback { self.found([self.host]) } }
        let bound = LoopBound(self, on: loop)
        switch resolver.resolve(host, for: requester, waiter: { found in bound.post { $0.found(found) } }) {
        case .addresses(let found): loop.afterCallback { self.found(found) }
        case .waiting(let ticket): lookUp = ticket
        }
    }

    private func found(_ addresses: [String]) {
        lookUp = nil
        guard !isOver else { return }
        left = addresses.compactMap { IPAddress($0) }.alternatingFamilies
        connectNext()
    }

    private func timeOut() {
        let hasBegun = lookUp.map { resolver.hasBegun($0) } ?? true
        end(.failure(.timedOut(host: host, phase: hasBegun ? .connect : .names)))
    }

    // MARK: Connections

    /// Tries the next address, in parallel with earlier attempts.
    private func connectNext() {
        while !left.isEmpty {
            let address = left.removeFirst()
            guard policy.value.permits(host: host, address: address) else {
                // If a permitted address was tried, too, its failure is the reason.
                if case .cannotResolve = failure {
                    failure = .addressRefused(host: host, address: address.description)
                }
                continue
            }
            guard connect(to: address) else { continue }
            // The next address is a better hope than the one that has been silent for longest.
            if attempts.count > Self.mostAttempts { drop(attempts.removeFirst(), closes: true) }
            if !left.isEmpty { pace?.schedule(afterSeconds: Self.paceSeconds) }
            return
        }
        if attempts.isEmpty { end(.failure(failure)) }
    }

    /// - Returns: whether it is connecting or connected.
    private func connect(to address: IPAddress) -> Bool {
        let peer = SocketAddress(address, port: port)
        let socket = makeSocket(
            peer.family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0, peer.connect(socket) == 0 || errno == EINPROGRESS else {
            note(errno)
            if socket >= 0 { close(socket) }
            return false
        }
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
        let watcher = SocketWatcher(socket, .write, on: loop) { [unowned self] in connected(socket) }
        attempts.append(Attempt(socket: socket, watcher: watcher))
        watcher.arm()
        return true
    }

    private func connected(_ socket: Int32) {
        guard let place = attempts.firstIndex(where: { $0.socket == socket }) else { return }
        let attempt = attempts.remove(at: place)
        var (code, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size)
        drop(attempt, closes: code != 0)
        guard code != 0 else { return end(.success(socket)) }
        note(code)
        connectNext()
    }

    private func note(_ code: Int32) {
        let detail = String(errno: code)
        failure =
            UpstreamError.isLackOfDescriptors(code)
            ? .outOfDescriptors(host: host) : .cannotConnect(host: host, detail: detail)
    }

    private func drop(_ attempt: Attempt, closes: Bool) {
        attempt.watcher.disarm()
        // Keep the watcher alive: its callback may be running.
        loop.afterCallback { withExtendedLifetime(attempt.watcher) {} }
        if closes { close(attempt.socket) }
    }

    private func end(_ result: Result<Int32, UpstreamError>) {
        guard !isOver else { return }
        cancel()
        completion(result)
    }
}

extension UpstreamClient {
    /// Connects to a host for a tunnel.
    /// - Parameters:
    ///   - host: a name in lower case, or an address without brackets.
    ///   - requester: the address under which its client is counted; nil for the proxy itself.
    ///   - completion: called once, later, with a connected non-blocking socket, which the caller has to close; not
    ///     called after `cancel`.
    package func dial(
        _ host: String, port: UInt16, for requester: IPAddress? = nil,
        completion: @escaping (Result<Int32, UpstreamError>) -> Void
    ) -> Dial {
        Dial(host, port, for: requester, self, completion)
    }
}

extension [IPAddress] {
    /// RFC 8305 §4: alternates between the families, beginning with the first address's, so that addresses of an
    /// unreachable family do not delay the others.
    package var alternatingFamilies: Self {
        guard let first else { return [] }
        let same = filter { $0.isV4 == first.isV4 }, other = filter { $0.isV4 != first.isV4 }
        return (0..<Swift.max(same.count, other.count)).flatMap {
            [same.dropFirst($0).first, other.dropFirst($0).first].compactMap(\.self)
        }
    }
}

extension IPAddress {
    fileprivate var isV4: Bool { if case .v4 = number { true } else { false } }
}
