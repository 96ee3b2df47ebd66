import CLinux
import CachePolicy
import Glibc
import HTTPModel

// no traps: constants, and sizes of system structures.

/// An address that the server listens on.
package struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
    /// A host name or an IP address, IPv6 without brackets.
    package let host: String
    /// 0 lets the system choose.
    package let port: Int
    /// Whether it stands for all IPv4 addresses, too, which `[::]:port` does where the system says so.
    private let isBothFamilies: Bool

    package init(host: String, port: Int) { self.init(host: host, port: port, isBothFamilies: false) }

    private init(host: String, port: Int, isBothFamilies: Bool) {
        (self.host, self.port, self.isBothFamilies) = (host, port, isBothFamilies)
    }

    /// Reads `host:port`, `[ipv6]:port` or `:port`, which means all addresses, IPv4 and IPv6.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65535).contains(port)
        else { return nil }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            return nil
        }
        self.init(host: host.isEmpty ? "::" : host, port: port, isBothFamilies: host.isEmpty)
    }

    func withPort(_ port: Int) -> ListenAddress {
        ListenAddress(host: host, port: port, isBothFamilies: isBothFamilies)
    }

    /// The local address of a connection.
    init(localOf descriptor: Int32) {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let port = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                if getsockname(descriptor, $0, &size) == 0 {
                    getnameinfo($0, size, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST)
                }
            }
            return Self.port(in: pointer)
        }
        let host = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        // `::ffff:a.b.c.d` if an IPv4 client connected to a socket of both families.
        self.init(host: IPAddress(host)?.unwrapped.description ?? host, port: port)
    }

    /// Whether only this machine can connect.
    package var isLoopback: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

    /// An address at which this machine can reach it: loopback if it stands for all addresses.
    package var reachable: ListenAddress {
        switch host {
        case "::" where isBothFamilies, "0.0.0.0": ListenAddress(host: "127.0.0.1", port: port)
        case "::": ListenAddress(host: "::1", port: port)
        default: self
        }
    }

    /// Whether it stands for all addresses of this machine.
    package var isEverywhere: Bool { host == "0.0.0.0" || host == "::" }

    /// The addresses at which other machines can reach it: those of this machine's interfaces if it stands for
    /// all. Blocks.
    package var reachableByOthers: [ListenAddress] {
        guard isEverywhere else { return isLoopback ? [] : [self] }
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        var found: [ListenAddress] = []
        var next = first
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0, entry.ifa_flags & UInt32(IFF_UP) != 0,
                let address = entry.ifa_addr,
                let name = Self.numericHost(address), !found.contains(where: { $0.host == name })
            else { continue }
            found.append(ListenAddress(host: name, port: port))
        }
        return found
    }

    /// The address as text; nil if players cannot use it in a URL: it is not an IP address, or requires the name
    /// of an interface.
    private static func numericHost(_ address: UnsafeMutablePointer<sockaddr>) -> String? {
        let family = Int32(address.pointee.sa_family)
        guard family == AF_INET || family == AF_INET6 else { return nil }
        let size = family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
        var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        guard getnameinfo(address, socklen_t(size), &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST) == 0 else {
            return nil
        }
        let text = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        return text.contains("%") ? nil : text
    }

    package var description: String {
        if isBothFamilies { return ":\(port)" }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Creates a listening socket: one for IPv4 alone if it is to be for both families and there is no IPv6.
    /// - Parameters:
    ///   - shared: whether other sockets of this process will listen on the port too (`SO_REUSEPORT`).
    ///   - unsentBytes: how many bytes the queue of an accepted socket holds ahead.
    func listen(shared: Bool, unsentBytes: Int) throws(ListenError) -> Int32 {
        do throws(ListenError) { return try open(shared: shared, unsentBytes: unsentBytes) } catch {
            guard isBothFamilies, error.code == EAFNOSUPPORT || error.code == EADDRNOTAVAIL else { throw error }
            return try ListenAddress(host: "0.0.0.0", port: port).open(shared: shared, unsentBytes: unsentBytes)
        }
    }

    private func open(shared: Bool, unsentBytes: Int) throws(ListenError) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &found)
        guard status == 0, let address = found else {
            throw ListenError(address: self, operation: "resolve", detail: String(cString: gai_strerror(status)))
        }
        defer { freeaddrinfo(found) }

        let descriptor = socket(
            address.pointee.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw failure("socket") }
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        if shared { setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, socklen_t(MemoryLayout<Int32>.size)) }
        if isBothFamilies {
            var off: Int32 = 0
            setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, socklen_t(MemoryLayout<Int32>.size))
        }
        guard bind(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0 else {
            let error = failure("bind")
            close(descriptor)
            throw error
        }
        Self.configure(descriptor, unsentBytes: unsentBytes)
        guard Glibc.listen(descriptor, 1024) == 0 else {
            let error = failure("listen")
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Sets options that Linux passes on to the accepted sockets.
    static func configure(_ descriptor: Int32, unsentBytes: Int) {
        let size = socklen_t(MemoryLayout<Int32>.size)
        var (on, seconds): (Int32, Int32) = (1, 60)
        // Without it, each answer waits up to 40 ms for the client's delayed acknowledgement.
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, size)
        var unsent = Int32(clamping: unsentBytes)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &unsent, size)
        // A paused player is never timed out, so the kernel has to detect a vanished one.
        setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, size)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE, &seconds, size)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, &seconds, size)
    }

    /// The error number that prevents listening here now; nil if listening is possible. Blocks.
    package var listenError: Int32? {
        do throws(ListenError) {
            close(try listen(shared: false, unsentBytes: 1 << 20))
            return nil
        } catch { return error.code ?? EADDRNOTAVAIL }
    }

    private func failure(_ operation: String) -> ListenError {
        let code = errno
        var error = ListenError(address: self, operation: operation, detail: String(errno: code))
        (error.isPortTaken, error.code) = (code == EADDRINUSE, code)
        return error
    }

    /// The port that a socket is bound to.
    static func port(of descriptor: Int32) -> Int {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &size) }
            return port(in: pointer)
        }
    }

    /// The port is at the same place in sockaddr_in and sockaddr_in6.
    private static func port(in storage: UnsafeMutablePointer<sockaddr_storage>) -> Int {
        storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { Int(UInt16(bigEndian: $0.pointee.sin_port)) }
    }
}

/// The server cannot listen.
package struct ListenError: Error, CustomStringConvertible {
    package let description: String
    /// Whether another process uses the port.
    package internal(set) var isPortTaken = false
    /// The system's error number, if it is a system error.
    var code: Int32?

    init(address: ListenAddress, operation: String, detail: String) {
        description = "cannot listen on \(address): \(operation): \(detail)"
    }

    init(inheriting reason: String) {
        description = reason
    }
}
