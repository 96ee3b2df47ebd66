import CCurl
import CachePolicy
import Glibc
import Dispatch

/// An address and port to connect to, as the kernel takes it.
package struct SocketAddress: Sendable {
    package let address: IPAddress
    let family: Int32
    private let storage: sockaddr_storage
    private let size: socklen_t

    /// nil for what is neither IPv4 nor IPv6.
    fileprivate init?(_ found: addrinfo) {
        guard let pointer = found.ai_addr, found.ai_addrlen <= MemoryLayout<sockaddr_storage>.size else { return nil }
        var storage = sockaddr_storage()
        memcpy(&storage, pointer, Int(found.ai_addrlen))
        (family, size, self.storage) = (found.ai_family, found.ai_addrlen, storage)
        switch found.ai_family {
        case AF_INET:
            let v4 = UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in.self).sin_addr
            address = IPAddress(v4: UInt32(bigEndian: v4.s_addr))
        case AF_INET6:
            let v6 = UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in6.self).sin6_addr
            let halves = withUnsafeBytes(of: v6) { $0.loadUnaligned(as: (UInt64, UInt64).self) }
            address = IPAddress(v6: (UInt64(bigEndian: halves.0), UInt64(bigEndian: halves.1)))
        default: return nil
        }
    }

    /// Begins to connect. As `connect` returns: 0, or -1 with `errno`.
    func connect(_ socket: Int32) -> Int32 {
        withUnsafePointer(to: storage) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(socket, $0, size) } }
    }
}

/// Looks up names for tunnels, off the loops: on four threads at the most, and those of one host one after the other.
enum HostLookUp {
    private static let queues = (0..<4).map { DispatchQueue(label: "reelcache.names-\($0)", qos: .userInitiated) }

    /// - Parameters:
    ///   - host: a name, or an address, without brackets.
    ///   - completion: called on one of the threads; with none where there is no such host.
    static func start(_ host: String, port: Int, completion: @escaping @Sendable ([SocketAddress]) -> Void) {
        let queue = queues[Int(host.hashValue.magnitude % UInt(queues.count))]
        queue.async { completion(addresses(of: host, port: port)) }
    }

    private static func addresses(of host: String, port: Int) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV
        var first: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &first) == 0 else { return [] }
        defer { freeaddrinfo(first) }
        var found: [SocketAddress] = []
        var next = first
        while let entry = next?.pointee {
            if let address = SocketAddress(entry) { found.append(address) }
            next = entry.ai_next
        }
        return found
    }
}
