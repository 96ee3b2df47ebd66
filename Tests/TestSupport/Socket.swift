import Foundation

/// A blocking TCP socket of IPv4. A plain handle: whoever made it closes it, once.
struct Socket: Sendable {
    let descriptor: Int32

    /// Listens on `port` of 127.0.0.1, or on any free port when it is 0. Accepted sockets take over the send buffer.
    static func listening(port: Int, sendBuffer: Int) throws -> Socket {
        let socket = try bound(to: port)
        do {
            try socket.set(SOL_SOCKET, SO_SNDBUF, Int32(sendBuffer))
            try retryingInterrupts("listen") { listen(socket.descriptor, 1024) }
            return socket
        } catch {
            socket.close()
            throw error
        }
    }

    /// Has `port` of 127.0.0.1, or any free port when it is 0: until this is closed, nobody else is given it, and
    /// connections to it are refused unless another socket listens on that very port.
    static func bound(to port: Int) throws -> Socket {
        let socket = try Socket.make()
        do {
            try socket.set(SOL_SOCKET, SO_REUSEADDR, 1)
            try withLoopbackAddress(port: port) { address in
                try retryingInterrupts("bind port \(port)") { bind(socket.descriptor, address, addressLength) }
            }
            return socket
        } catch {
            socket.close()
            throw error
        }
    }

    /// Connects to `port` of 127.0.0.1.
    /// - Parameter receiveBuffer: in bytes; it bounds the window only when it is set before the connection is made.
    static func connected(port: Int, receiveBuffer: Int?) throws -> Socket {
        let socket = try Socket.make()
        do {
            if let receiveBuffer { try socket.set(SOL_SOCKET, SO_RCVBUF, Int32(receiveBuffer)) }
            try withLoopbackAddress(port: port) { address in
                try retryingInterrupts("connect port \(port)") { connect(socket.descriptor, address, addressLength) }
            }
            try socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
            return socket
        } catch {
            socket.close()
            throw error
        }
    }

    /// The port that the socket is bound to.
    func port() throws -> Int {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard result == 0 else { throw SystemError("getsockname") }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    func accepted() throws -> Socket {
        let socket = Socket(descriptor: try retryingInterrupts("accept") { accept(descriptor, nil, nil) })
        closeOnExec(socket.descriptor)
        // Without it Nagle's algorithm and delayed acknowledgements hold small writes back for 40 ms.
        try? socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        return socket
    }

    func set(_ level: Int32, _ option: Int32, _ value: Int32) throws {
        var value = value
        let length = socklen_t(MemoryLayout<Int32>.size)
        guard setsockopt(descriptor, level, option, &value, length) == 0 else {
            throw SystemError("setsockopt \(option)")
        }
    }

    /// Bounds each receive and each send; one that takes longer fails with `EAGAIN`.
    func setTimeouts(_ duration: Duration) throws {
        var time = timeval(tv_sec: Int(duration.components.seconds), tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            let length = socklen_t(MemoryLayout<timeval>.size)
            guard setsockopt(descriptor, SOL_SOCKET, option, &time, length) == 0 else {
                throw SystemError("setsockopt \(option)")
            }
        }
    }

    /// Makes `close` send a reset instead of an orderly end.
    func resetOnClose() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Sends all of `bytes`.
    func send(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = try retryingInterrupts("send") {
                Glibc.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    func send(_ text: String) throws {
        var text = text
        try text.withUTF8 { try send(UnsafeRawBufferPointer($0)) }
    }

    /// Receives what is there, at most `limit` bytes, waiting for the first. Empty at the end of the stream.
    func receive(atMost limit: Int = 64 * 1024) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            let base = buffer.baseAddress
            count = try retryingInterrupts("receive") { recv(descriptor, base, limit, 0) }
        }
    }

    /// Throws away what has come in and was not read: closing with it unread would reset the connection, and a reset
    /// can destroy what was sent before.
    func discardInput() {
        var scrap = [UInt8](repeating: 0, count: 16 * 1024)
        while recv(descriptor, &scrap, scrap.count, Int32(MSG_DONTWAIT)) > 0 {}
    }

    /// Ends both directions and wakes the threads that are blocked on them; the descriptor stays taken.
    func shutDown() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    func close() {
        Glibc.close(descriptor)
    }

    private static let addressLength = socklen_t(MemoryLayout<sockaddr_in>.size)

    private static func make() throws -> Socket {
        Socket(
            descriptor: try retryingInterrupts("socket") {
                socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            })
    }

    private static func withLoopbackAddress(port: Int, _ body: (UnsafePointer<sockaddr>) throws -> Void) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        try withUnsafePointer(to: &address) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body($0) }
        }
    }
}

/// Whether all that was sent on a socket is in the other end's: its kernel has acknowledged it.
package func allHasArrived(_ descriptor: Int32) -> Bool {
    var info = tcp_info(), size = socklen_t(MemoryLayout<tcp_info>.size)
    return getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0 && info.tcpi_unacked == 0
}

/// Keeps the descriptor out of programs that tests start: one that holds a connection open would hide its end.
func closeOnExec(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
}

/// Waits for events on descriptors, for `patience` at most, or without end when it is `nil`. Fills in `revents`.
/// - Returns: false when the time passed without an event.
func pollEvents(_ entries: inout [pollfd], within patience: Duration?) throws -> Bool {
    let end = patience.map { ContinuousClock.now + $0 }
    while true {
        let count = poll(&entries, nfds_t(entries.count), end.map { millisecondsRoundedUp($0 - .now) } ?? -1)
        if count >= 0 { return count > 0 }
        if errno != EINTR { throw SystemError("poll") }
    }
}

private func millisecondsRoundedUp(_ duration: Duration) -> Int32 {
    let (seconds, attoseconds) = max(duration, .zero).components
    return Int32(clamping: seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
}
