import CLinux
import CachePolicy
import Glibc

// no traps: sizes of system structures.

/// A client's socket on its way from the listener to the loop that serves it.
struct AcceptedSocket: Sendable {
    let descriptor: Int32
    /// The other end of the connection: a client, or a balancer.
    let peer: IPEndpoint
    /// The address under which the connection is counted; nil if it is not.
    var counted: IPAddress?

    /// - Parameter descriptor: a connected non-blocking socket, which whoever adopts it closes.
    init(_ descriptor: Int32, peer: IPEndpoint) { (self.descriptor, self.peer) = (descriptor, peer) }

    /// Accepts the next connection.
    /// - Returns: nil if there is none or it fails, with the reason in `errno`.
    init?(from listener: Int32) {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        descriptor = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                accept4(listener, $0, &size, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
            }
        }
        guard descriptor >= 0 else { return nil }
        peer = IPEndpoint(storage)
    }
}

extension IPEndpoint {
    fileprivate init(_ storage: sockaddr_storage) {
        let (address, port) = withUnsafeBytes(of: storage) { bytes in
            guard Int32(storage.ss_family) == AF_INET6 else {
                let v4 = bytes.loadUnaligned(as: sockaddr_in.self)
                return (withUnsafeBytes(of: v4.sin_addr) { IPAddress(networkOrder: $0) }, v4.sin_port)
            }
            let v6 = bytes.loadUnaligned(as: sockaddr_in6.self)
            return (withUnsafeBytes(of: v6.sin6_addr) { IPAddress(networkOrder: $0) }, v6.sin6_port)
        }
        // Listeners have no addresses of other families.
        self.init(address ?? IPAddress(v4: 0), port: UInt16(bigEndian: port))
    }
}
