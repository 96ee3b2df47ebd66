import CCurl
import CachePolicy
import EventIO
import Glibc

/// A connection on its way to some host and port, for a tunnel: under the same address policy as transfers, asked right before each socket is
/// connected, so that a name cannot mean another address by then. Loop-bound.
package final class Dial {
    private let host: String
    private let policy: Current<AddressPolicy>
    private let loop: EventLoop
    private let completion: (Result<Int32, UpstreamError>) -> Void
    private let timeout: Double
    private var timer: LoopTimer?
    private var left: [SocketAddress] = []
    private var socket: Int32 = -1
    private var watcher: SocketWatcher?
    private var failure: UpstreamError?
    private var isOver = false

    /// - Parameters:
    ///   - host: a name in lower case, or an address, without brackets.
    ///   - timeout: seconds, for the look-up and all of the host's addresses together.
    ///   - completion: called once, later, with a connected socket that does not block, which is the caller's to close; not after `cancel`.
    package init(
        host: String, port: Int, policy: Current<AddressPolicy>, loop: EventLoop, timeout: Double,
        completion: @escaping (Result<Int32, UpstreamError>) -> Void
    ) {
        (self.host, self.policy, self.loop, self.timeout, self.completion) = (host, policy, loop, timeout, completion)
        timer = LoopTimer(on: loop) { [unowned self] in end(.failure(.timedOut(host: host, phase: .connect))) }
        timer?.schedule(afterSeconds: timeout)
        let bound = LoopBound(self, on: loop)
        HostLookUp.start(host, port: port) { found in bound.post { $0.found(found) } }
    }

    package func cancel() {
        isOver = true
        timer?.cancel()
        timer = nil
        dropSocket()
    }

    private func found(_ addresses: [SocketAddress]) {
        guard !isOver else { return }
        left = addresses
        failure = .cannotResolve(host: host)
        connectNext()
    }

    private func connectNext() {
        dropSocket()
        while !left.isEmpty {
            let address = left.removeFirst()
            guard policy.value.permits(host: host, address: address.address) else {
                failure = .addressRefused(host: host, address: address.address.description)
                continue
            }
            guard connect(to: address) else { continue }
            return
        }
        end(.failure(failure ?? .cannotResolve(host: host)))
    }

    /// - Returns: whether it is under way, or there.
    private func connect(to address: SocketAddress) -> Bool {
        socket = Glibc.socket(address.family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0, address.connect(socket) == 0 || errno == EINPROGRESS else {
            note(errno)
            dropSocket()
            return false
        }
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
        watcher = SocketWatcher(socket, .write, on: loop) { [unowned self] in connected() }
        watcher?.arm()
        return true
    }

    private func connected() {
        var (code, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size)
        guard code == 0 else {
            note(code)
            return connectNext()
        }
        releaseWatcher()
        let connected = socket
        socket = -1
        end(.success(connected))
    }

    private func note(_ code: Int32) { failure = .cannotConnect(host: host, detail: String(cString: strerror(code))) }

    private func dropSocket() {
        releaseWatcher()
        if socket >= 0 { close(socket) }
        socket = -1
    }

    /// Its callback may be running.
    private func releaseWatcher() {
        guard let watcher else { return }
        watcher.disarm()
        self.watcher = nil
        loop.afterCallback { withExtendedLifetime(watcher) {} }
    }

    private func end(_ result: Result<Int32, UpstreamError>) {
        guard !isOver else { return }
        cancel()
        completion(result)
    }
}
