import CCurl
import Glibc

/// The sockets of a client's connections, identified again when curl reuses one. Loop-bound.
///
/// Bytes that an origin sends after the end of an answer wait in the socket, and curl would read them as the start of
/// the next answer: curl 7.88.1 takes a connection with unread bytes for a live one.
struct OriginSockets {
    /// The two ends of a connection, as curl states them before a request. The local address is left out: only one
    /// leads there.
    struct Ends: Hashable {
        let address: String
        let port: Int32
        let localPort: Int32
    }

    private struct Known {
        let fd: Int32
        /// On HTTP/2, a server may send frames at any time.
        var isHTTP2 = false
    }

    /// Sockets without a request so far: their local port is not known before they are connected.
    private var unnamed: Set<Int32> = []
    private var known: [Ends: Known] = [:]
    private var ends: [Int32: Ends] = [:]
    /// Whether an attempt to connect has ended without a request since this was last set to false.
    var hasFailedAttempt = false

    mutating func opened(_ fd: Int32) { unnamed.insert(fd) }

    /// curl waits for it no more: it has connected, or was given up.
    mutating func left(_ fd: Int32) { if unnamed.contains(fd) { hasFailedAttempt = true } }

    mutating func closed(_ fd: Int32) {
        if unnamed.remove(fd) != nil { hasFailedAttempt = true }
        if let ends = ends.removeValue(forKey: fd) { known[ends] = nil }
    }

    /// The first request is about to be sent over a connection.
    /// - Parameter candidates: the sockets created for it: several if the host has several addresses.
    mutating func named(_ ends: Ends, among candidates: [Int32]) {
        guard let fd = candidates.first(where: { unnamed.contains($0) && Self.localPort(of: $0) == ends.localPort })
        else { return }
        unnamed.remove(fd)
        known[ends] = Known(fd: fd)
        self.ends[fd] = ends
    }

    mutating func isHTTP2(_ ends: Ends) { known[ends]?.isHTTP2 = true }

    /// Whether a connection that is about to be reused has unread bytes although nothing was requested.
    func hasSurplus(_ ends: Ends) -> Bool {
        guard let connection = known[ends], !connection.isHTTP2 else { return false }
        var byte: UInt8 = 0
        // curl itself handles a closed connection.
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
