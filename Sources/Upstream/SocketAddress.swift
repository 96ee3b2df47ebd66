import CachePolicy
import Glibc

extension Dial {
    /// An address and port in the kernel's form.
    struct SocketAddress {
        let family: Int32
        private let storage: sockaddr_storage
        private let size: Int

        init(_ address: IPAddress, port: UInt16) {
            var storage = sockaddr_storage()
            (family, size) = withUnsafeMutableBytes(of: &storage) { bytes in
                switch address.number {
                case .v4(let number):
                    var v4 = sockaddr_in()
                    v4.sin_family = sa_family_t(AF_INET)
                    v4.sin_port = port.bigEndian
                    v4.sin_addr.s_addr = number.bigEndian
                    withUnsafeBytes(of: v4) { bytes.copyMemory(from: $0) }
                    return (AF_INET, MemoryLayout<sockaddr_in>.size)
                case .v6(let high, let low):
                    var v6 = sockaddr_in6()
                    v6.sin6_family = sa_family_t(AF_INET6)
                    v6.sin6_port = port.bigEndian
                    withUnsafeMutableBytes(of: &v6.sin6_addr) {
                        $0.storeBytes(of: (high.bigEndian, low.bigEndian), as: (UInt64, UInt64).self)
                    }
                    withUnsafeBytes(of: v6) { bytes.copyMemory(from: $0) }
                    return (AF_INET6, MemoryLayout<sockaddr_in6>.size)
                }
            }
            self.storage = storage
        }

        /// Starts to connect. Returns like `connect`: 0, or -1 with `errno`.
        func connect(_ socket: Int32) -> Int32 {
            withUnsafePointer(to: storage) {
                // no trap: at most what `storage` holds
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(socket, $0, socklen_t(size)) }
            }
        }
    }
}
