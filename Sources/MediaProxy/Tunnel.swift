import CacheFill
import CachePolicy
import EventIO
import Glibc
import HTTPModel
import HTTPTransport
import Upstream

/// A connection through the proxy to a host (RFC 9110 §9.3.6): bytes are forwarded both ways as they arrive, and
/// none are stored. Loop-bound.
///
/// Each direction waits for its receiver, and holds no more bytes than a `Relay` does.
final class Tunnel: BodySink, BodySource {
    private let exchange: Exchange
    private let proxy: ProxyLoop
    /// The connection to the host; -1 without one.
    private var socket: Int32 = -1
    private var reader: SocketWatcher?
    private var writer: SocketWatcher?
    private var idleTimer: LoopTimer?
    /// When the last byte was forwarded.
    private var lastPassed = MonotonicClock.nanoseconds()

    private var upload: Relay
    /// Bytes of the upload that were taken out of the relay and not sent yet.
    private var unsent = UnsafeRawBufferPointer(start: nil, count: 0)
    private var download: Relay
    private var end: End?
    /// The client has disconnected; the bytes that it had sent are still being forwarded.
    private var isClientGone = false
    private var isOver = false

    private enum End { case complete, broken }

    /// A tunnel is closed after this many seconds without a byte in either direction: most peers close their
    /// connection, but some just vanish.
    private var idleSeconds: Double { proxy.filler.origins.upstream.settings.tunnelIdleTimeout }
    /// How long forwarding the client's last bytes may take after it has disconnected.
    private static let lastSeconds: Double = 5

    init(_ exchange: Exchange, _ proxy: ProxyLoop) {
        self.exchange = exchange
        self.proxy = proxy
        upload = Relay(in: proxy.metrics.transit, for: exchange.countedClient)
        download = Relay(in: proxy.metrics.transit, for: exchange.countedClient)
    }

    func start(_ url: OriginURL) {
        proxy.metrics.tunnels.add()
        // A URL cannot have a port outside this range.
        let port = UInt16(clamping: url.port ?? url.scheme.defaultPort)
        // An IPv6 address has brackets only in a URL.
        let dial = proxy.filler.origins.upstream.dial(
            url.host.trimmingBrackets, port: port, for: exchange.countedClient
        ) {
            [self] in dialled($0)
        }
        exchange.onAbort { dial.cancel() }
    }

    private func dialled(_ result: Result<Int32, UpstreamError>) {
        switch result {
        case .success(let socket): open(socket)
        case .failure(let error):
            let failure = FillError.upstream(error)
            proxy.metrics.errors.add("tunnel")
            exchange.respond(failure, proxy.policy.adviceWords, closes: true)
        }
    }

    private func open(_ socket: Int32) {
        guard exchange.isOpen else {
            close(socket)
            return
        }
        self.socket = socket
        proxy.metrics.openTunnels.add(1)
        reader = SocketWatcher(socket, .read, on: exchange.loop) { [unowned self] in receive() }
        writer = SocketWatcher(socket, .write, on: exchange.loop) { [unowned self] in transmit() }
        idleTimer = LoopTimer(on: exchange.loop) { [unowned self] in look() }
        idleTimer?.schedule(afterSeconds: idleSeconds)
        reader?.arm()
        exchange.openTunnel(self)
    }

    // MARK: To the host

    func received(_ bytes: UnsafeRawBufferPointer) -> BodyDemand {
        guard !isOver else { return .more }
        upload.append(bytes)
        notePassing(bytes.count)
        // When the connection to the host is full, the client waits.
        upload.isHeld = upload.isFull
        if unsent.isEmpty { transmit() }
        return upload.isHeld ? .pause : .more
    }

    private func transmit() {
        while socket >= 0 {
            if unsent.isEmpty { unsent = upload.next(limit: .max) }
            guard !unsent.isEmpty else {
                writer?.disarm()
                return sentAll()
            }
            let count = send(socket, unsent.baseAddress, unsent.count, Int32(MSG_NOSIGNAL))
            if count > 0 {
                unsent = UnsafeRawBufferPointer(rebasing: unsent[count...])
            } else if count < 0 && errno == EAGAIN {
                writer?.arm()
                return
            } else if count < 0 && errno != EINTR {
                return finish(.broken)
            }
        }
    }

    private func sentAll() {
        if isClientGone { return shutDown() }
        guard upload.isHeld else { return }
        upload.isHeld = false
        // Must not happen within the sink's own call.
        exchange.loop.afterCallback { [self] in exchange.resumeReading() }
    }

    func ended() {}

    /// The client has disconnected. RFC 9110 §9.3.6: the bytes that it has sent still go to the host.
    func failed(_ fault: BodyFault) {
        isClientGone = true
        guard socket >= 0, !unsent.isEmpty || !upload.isEmpty else { return shutDown() }
        idleTimer?.schedule(afterSeconds: Self.lastSeconds)
        lastWay = self
    }

    /// Keeps the tunnel alive while nothing else does.
    private var lastWay: Tunnel?

    // MARK: To the client

    private func receive() {
        guard !download.isFull else {
            download.isHeld = true
            reader?.disarm()
            return
        }
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
            let count = recv(socket, buffer.baseAddress, buffer.count, 0)
            if count > 0 {
                download.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                notePassing(count)
                exchange.resume()
            } else if count == 0 {
                finish(.complete)
            } else if errno != EAGAIN && errno != EINTR {
                finish(.broken)
            }
        }
    }

    /// The host sends nothing more.
    private func finish(_ end: End) {
        guard self.end == nil else { return }
        self.end = end
        reader?.disarm()
        writer?.disarm()
        if isClientGone { shutDown() } else { exchange.resume() }
    }

    func next(limit: Int) -> BodyStep {
        let bytes = download.next(limit: limit)
        if download.isHeld, !download.isFull, end == nil {
            download.isHeld = false
            reader?.arm()
        }
        guard bytes.isEmpty else {
            exchange.count(fromOrigin: Int64(bytes.count))
            return .span(BodySpan(bytes: bytes))
        }
        switch end {
        case .complete: return .end
        case .broken: return .cut
        case nil: return .wait
        }
    }

    /// The client has received everything, or has disconnected.
    func finish() {
        if lastWay == nil { shutDown() }
    }

    // MARK: End

    private func notePassing(_ count: Int) {
        proxy.metrics.tunnelBytes.add(Int64(count))
        lastPassed = MonotonicClock.nanoseconds()
    }

    private func look() {
        if isClientGone { return shutDown() }
        let idle = Double(MonotonicClock.nanoseconds() -| lastPassed) / 1e9
        guard idle >= idleSeconds else { idleTimer?.schedule(afterSeconds: idleSeconds - idle); return }
        // `next` cannot end it: the connection does not call it while the client reads nothing.
        shutDown()
        exchange.cut()
    }

    private func shutDown() {
        guard !isOver else { return }
        isOver = true
        proxy.metrics.openTunnels.add(-1)
        idleTimer?.cancel()
        let parts = (reader, writer, lastWay, idleTimer)
        reader?.disarm()
        writer?.disarm()
        (reader, writer, lastWay, idleTimer) = (nil, nil, nil, nil)
        // One of their callbacks may be running.
        exchange.loop.afterCallback { withExtendedLifetime(parts) {} }
        close(socket)
        socket = -1
    }
}

extension String {
    fileprivate var trimmingBrackets: String {
        hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self
    }
}
