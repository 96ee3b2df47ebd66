import Glibc
import Synchronization
import TestSupport
import Testing

/// Answers each connection's first request with the same bytes, then closes. For what no proper server sends.
final class CannedOrigin: Sendable {
    let port: Int
    private let listener: Int32
    private let thread: Mutex<Background<Void>?> = Mutex(nil)

    /// - Parameter response: sent as it is; nil: connections are never accepted, and wait in the kernel.
    convenience init(_ response: String?) throws { try self.init(bytes: response.map { Array($0.utf8) }) }

    init(bytes response: [UInt8]?) throws {
        (listener, port) = Self.listen()
        guard let response else { return }
        let background = try Background { [listener] in
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                Self.answer(connection, response)
            }
        }
        thread.withLock { $0 = background }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        thread.withLock { try? $0?.value() }
        close(listener)
    }

    /// A socket on a free port of 127.0.0.1.
    static func listen() -> (listener: Int32, port: Int) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutableBytes(of: &address) { bytes in
            let pointer = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
            bind(listener, pointer, length)
            Glibc.listen(listener, 16)
            getsockname(listener, pointer, &length)
            return Int(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self)))
        }
        return (listener, port)
    }

    var url: String { "http://127.0.0.1:\(port)/" }

    private static func holdsHead(_ bytes: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: "\r\n\r\n".utf8) }
    }

    private static func answer(_ connection: Int32, _ response: [UInt8]) {
        var request: [UInt8] = [], buffer = [UInt8](repeating: 0, count: 4096)
        // The begin of a body may come with the head.
        while !holdsHead(request) {
            let count = recv(connection, &buffer, buffer.count, 0)
            if count <= 0 { break }
            request += buffer[..<count]
        }
        var sent = 0
        while sent < response.count {
            let count = response[sent...].withUnsafeBytes {
                send(connection, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { break }
            sent += count
        }
        shutdown(connection, Int32(SHUT_WR))
        // Closing with unread bytes would reset the connection, and take the response with it.
        while recv(connection, &buffer, buffer.count, 0) > 0 {}
        close(connection)
    }
}

/// A port where the kernel has no room for a connection: who connects there hears nothing.
final class SilentPort {
    private var sockets: [Int32] = []

    init(_ address: UInt32, port: Int) throws {
        let listener = make(nonBlocking: false)
        #expect(withAddress(address, port) { bind(listener, $0, $1) } == 0 && listen(listener, 0) == 0)
        // The first ones fill its queue.
        for _ in 0..<4 {
            let socket = make(nonBlocking: true)
            _ = withAddress(address, port) { connect(socket, $0, $1) }
        }
    }

    deinit { for socket in sockets { close(socket) } }

    private func make(nonBlocking: Bool) -> Int32 {
        let socket = socket(
            AF_INET,
            Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue) | (nonBlocking ? Int32(SOCK_NONBLOCK.rawValue) : 0), 0)
        sockets.append(socket)
        return socket
    }

    private func withAddress(_ address: UInt32, _ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32)
        -> Int32
    {
        var peer = sockaddr_in()
        peer.sin_family = sa_family_t(AF_INET)
        peer.sin_port = UInt16(clamping: port).bigEndian
        peer.sin_addr.s_addr = address.bigEndian
        return withUnsafePointer(to: peer) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }
}
