import CCurl
import Glibc
import HTTPModel
import CachePolicy

/// The address that curl is about to connect to.
struct SocketPeer {
    let address: IPAddress
    let text: String

    /// nil if it is neither IPv4 nor IPv6.
    init?(_ peer: UnsafeMutablePointer<curl_sockaddr>) {
        // `addr` is declared as a plain sockaddr, but has room for any kind.
        let raw = UnsafeRawPointer(peer) + MemoryLayout<curl_sockaddr>.offset(of: \.addr)!
        switch peer.pointee.family {
        case AF_INET:
            var address = raw.loadUnaligned(as: sockaddr_in.self).sin_addr
            guard let known = withUnsafeBytes(of: address, { IPAddress(networkOrder: $0) }) else { return nil }
            self.address = known
            text = Self.text(AF_INET, &address)
        case AF_INET6:
            var address = raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            guard let known = withUnsafeBytes(of: address, { IPAddress(networkOrder: $0) }) else { return nil }
            self.address = known
            text = Self.text(AF_INET6, &address)
        default: return nil
        }
    }

    private static func text(_ family: Int32, _ address: UnsafeRawPointer) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            // no trap: INET6_ADDRSTRLEN
            guard inet_ntop(family, address, buffer.baseAddress!, socklen_t(buffer.count)) != nil else { return "" }
            return String(cString: buffer.baseAddress!)
        }
    }
}
