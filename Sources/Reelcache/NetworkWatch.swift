import CachePolicy
import CLinux
import EventIO
import Glibc
import HTTPModel
import Logging
import Upstream

extension LocalNetworks {
    /// The current networks of this machine; nil if the system does not tell.
    package static func look() -> LocalNetworks? {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return nil }
        defer { freeifaddrs(first) }
        var interfaces: [(address: IPAddress, prefixLength: Int)] = []
        var next = first
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard let address = IPAddress(entry.ifa_addr) else { continue }
            interfaces.append((address, IPAddress(entry.ifa_netmask)?.leadingOnes ?? .max))
            // The other end of a tunnel.
            if entry.ifa_flags & isPointToPoint != 0, let peer = IPAddress(entry.ifa_ifu.ifu_dstaddr) {
                interfaces.append((peer, .max))
            }
        }
        return LocalNetworks(interfaces)
    }

    /// `IFF_POINTOPOINT`
    private static let isPointToPoint: UInt32 = 0x10
}

extension IPAddress {
    /// nil for a missing address, or one that is neither IPv4 nor IPv6.
    fileprivate init?(_ socketAddress: UnsafeMutablePointer<sockaddr>?) {
        guard let socketAddress else { return nil }
        let raw = UnsafeRawPointer(socketAddress)
        let address: IPAddress? =
            switch Int32(socketAddress.pointee.sa_family) {
            case AF_INET:
                withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { IPAddress(networkOrder: $0) }
            case AF_INET6:
                withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { IPAddress(networkOrder: $0) }
            default: nil
            }
        guard let address else { return nil }
        self = address
    }
}

/// Keeps an address policy up to date with the networks of this machine: it looks at the start, and whenever the
/// kernel reports that an address was added or removed. Loop-bound.
final class NetworkWatch {
    private let addresses: Current<AddressPolicy>
    private let resolver: NameResolver
    private let translations: TranslationWatch
    private let descriptor: Int32
    private var watcher: SocketWatcher?
    private var timer: LoopTimer?
    private let logger: Logger
    private var isBlind = false
    /// Called after a change of this machine's addresses.
    var onChange: () -> Void = {}

    /// Seconds between two looks if the kernel does not report changes, as in some sandboxes.
    private static let lookInterval = 5.0

    init(_ addresses: Current<AddressPolicy>, _ resolver: NameResolver, on loop: EventLoop, logger: Logger) {
        (self.addresses, self.resolver, self.logger) = (addresses, resolver, logger)
        translations = TranslationWatch(addresses, resolver, on: loop)
        descriptor = reel_address_changes()
        if descriptor >= 0 {
            watcher = SocketWatcher(descriptor, .read, on: loop) { [unowned self] in changed() }
            watcher?.arm()
        } else {
            timer = LoopTimer(on: loop) { [unowned self] in
                look()
                timer?.schedule(afterSeconds: Self.lookInterval)
            }
            timer?.schedule(afterSeconds: Self.lookInterval)
        }
        // The kernel reports all changes from here on.
        look()
    }

    /// Stops watching. On the loop, before the loop ends.
    func stop() {
        translations.stop()
        onChange = {}
        timer?.cancel()
        timer = nil
        guard watcher != nil else { return }
        watcher?.disarm()
        watcher = nil
        close(descriptor)
    }

    private func changed() {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        // Whatever the messages contain, and even if some were lost: everything is looked up again.
        while recv(descriptor, &buffer, buffer.count, 0) > 0 || errno == ENOBUFS || errno == EINTR {}
        look()
    }

    private func look() {
        guard let local = LocalNetworks.look() else { return noteBlindness() }
        isBlind = false
        guard addresses.value.local != local else { return }
        addresses.change { $0.local = local }
        resolver.forgetAll()
        translations.networkChanged(hasIPv6: local.hasIPv6)
        onChange()
    }

    /// Sandboxes that forbid netlink (`RestrictAddressFamilies=` without `AF_NETLINK`) hide the addresses.
    private func noteBlindness() {
        guard !isBlind else { return }
        isBlind = true
        logger.warning(
            """
            this machine's own addresses cannot be looked up (getifaddrs: \(String(errno: errno))), so public ones among them count as public: \
            permit netlink sockets (AF_NETLINK)
            """)
    }
}
