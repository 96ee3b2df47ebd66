import CCurl
import Glibc

/// The sockets of one client's connections, found again when curl uses one for another request. Loop-bound.
///
/// What an origin sends after the end of an answer waits in the socket, and curl would read it as the beginning of the
/// next one. Curl 7.88.1 takes a connection with bytes to read for one that is alive.
struct OriginSockets {
    /// The two ends of a connection, as curl tells them before a request. Of this machine there is one address only
    /// that leads there.
    struct Ends: Hashable {
        let address: String
        let port: Int32
        let localPort: Int32
    }

    private struct Known {
        let fd: Int32
        /// There a server may say something at any time.
        var isHTTP2 = false
    }

    /// Made, and not asked over yet: their local port is not known before they are connected.
    private var unnamed: Set<Int32> = []
    private var known: [Ends: Known] = [:]
    private var ends: [Int32: Ends] = [:]

    mutating func opened(_ fd: Int32) { unnamed.insert(fd) }

    mutating func closed(_ fd: Int32) {
        unnamed.remove(fd)
        if let ends = ends.removeValue(forKey: fd) { known[ends] = nil }
    }

    /// The first request is about to go out over a connection.
    /// - Parameter candidates: the sockets that were made for it: several where a host has several addresses.
    mutating func named(_ ends: Ends, among candidates: [Int32]) {
        guard let fd = candidates.first(where: { unnamed.contains($0) && Self.localPort(of: $0) == ends.localPort })
        else { return }
        unnamed.remove(fd)
        known[ends] = Known(fd: fd)
        self.ends[fd] = ends
    }

    mutating func isHTTP2(_ ends: Ends) { known[ends]?.isHTTP2 = true }

    /// Whether a connection that is about to be used again has something to read, though nothing was asked.
    func hasSurplus(_ ends: Ends) -> Bool {
        guard let connection = known[ends], !connection.isHTTP2 else { return false }
        var byte: UInt8 = 0
        // Where it was closed, curl knows what to do.
        return recv(connection.fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    private static func localPort(of fd: Int32) -> Int32? {
        var (address, length) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
        return withUnsafeMutableBytes(of: &address) { bytes in
            guard getsockname(fd, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length) == 0 else {
                return nil
            }
            // The port has the same place in both families.
            return Int32(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self)))
        }
    }
}
