import Foundation
import Synchronization
import TestSupport

/// Stands between a client and a server, and breaks each connection that has brought the client many bytes.
final class BreakingRelay: Sendable {
    let port: Int
    private let server: Int
    private let limit: Int
    private let listener: Int32
    private let broken = Atomic<Int>(0)

    /// How many connections were broken.
    var breaks: Int { broken.load(ordering: .relaxed) }

    init(to server: Int, after limit: Int) throws {
        (self.server, self.limit) = (server, limit)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var (address, length) = (Self.address(0), socklen_t(MemoryLayout<sockaddr_in>.size))
        let isBound = withUnsafeMutableBytes(of: &address) { bytes in
            let pointer = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
            return bind(listener, pointer, length) == 0 && listen(listener, 16) == 0
                && getsockname(listener, pointer, &length) == 0
        }
        guard isBound else { throw SystemError("bind") }
        port = Int(UInt16(bigEndian: address.sin_port))
        self.listener = listener
        Thread.detachNewThread { [self] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                Thread.detachNewThread { self.relay(client) }
            }
        }
    }

    private static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
        return address
    }

    private func relay(_ client: Int32) {
        let upstream = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer {
            close(client)
            close(upstream)
        }
        var address = Self.address(server)
        let isConnected = withUnsafeBytes(of: &address) {
            connect(upstream, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, socklen_t($0.count)) == 0
        }
        guard isConnected else { return }
        var (buffer, count) = ([UInt8](repeating: 0, count: 1 << 16), 0)
        while true {
            var ends = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: upstream, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&ends, 2, -1) > 0 else { return }
            let isFromClient = ends[0].revents != 0
            let read = recv(isFromClient ? client : upstream, &buffer, buffer.count, 0)
            guard read > 0, send(isFromClient ? upstream : client, buffer, read, Int32(MSG_NOSIGNAL)) == read else {
                return
            }
            if !isFromClient { count += read }
            if count > limit {
                broken.add(1, ordering: .relaxed)
                return
            }
        }
    }
}
