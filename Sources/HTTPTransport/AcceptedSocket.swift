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
        self = withUnsafeBytes(of: storage) { bytes in
            guard Int32(storage.ss_family) == AF_INET6 else {
                let v4 = bytes.loadUnaligned(as: sockaddr_in.self)
                return IPEndpoint(
                    IPAddress(v4: UInt32(bigEndian: v4.sin_addr.s_addr)), port: UInt16(bigEndian: v4.sin_port))
            }
            let v6 = bytes.loadUnaligned(as: sockaddr_in6.self)
            let halves = withUnsafeBytes(of: v6.sin6_addr) { $0.loadUnaligned(as: (UInt64, UInt64).self) }
            return IPEndpoint(
                IPAddress(v6: (UInt64(bigEndian: halves.0), UInt64(bigEndian: halves.1))),
                port: UInt16(bigEndian: v6.sin6_port))
        }
    }
}
