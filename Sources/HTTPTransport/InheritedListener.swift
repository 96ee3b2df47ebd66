import CLinux
import Glibc

/// A listening socket that a service manager has opened and passes on, so that connections wait in it while the
/// proxy restarts (sd_listen_fds(3)).
package struct InheritedListener: Sendable {
    /// Of `listen(2)`, blocking or not.
    let descriptor: Int32
    /// Where it listens.
    package let address: ListenAddress

    /// The first one that is passed (`SD_LISTEN_FDS_START`).
    private static let firstDescriptor: Int32 = 3
    private static let variables = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"]

    /// Takes the socket over, and the variables that name it out of the environment: programs that this process starts
    /// inherit neither. Before other threads run.
    /// - Returns: nil if none is passed.
    /// - Throws: if it is not a single socket that listens for TCP.
    package static func take() throws(ListenError) -> InheritedListener? {
        let values = variables.map { name in getenv(name).map { String(cString: $0) } }
        for name in variables { unsetenv(name) }
        guard let process = values[0].flatMap(Int32.init), process == getpid(), let count = values[1].flatMap(Int.init),
            count > 0
        else { return nil }
        guard count == 1 else {
            throw ListenError(
                inheriting: "the service manager passes \(count) sockets: keep one ListenStream in the socket unit")
        }
        return try InheritedListener(firstDescriptor)
    }

    /// - Throws: if it does not listen for TCP.
    package init(_ descriptor: Int32) throws(ListenError) {
        guard Self.option(SO_ACCEPTCONN, of: descriptor) == 1,
            Self.option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue), // no trap: a constant
            [AF_INET, AF_INET6].contains(Self.option(SO_DOMAIN, of: descriptor))
        else {
            throw ListenError(
                inheriting:
                    "the socket of the service manager does not listen for TCP: write ListenStream=HOST:PORT in the socket unit"
            )
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        self.descriptor = descriptor
        address = ListenAddress(localOf: descriptor)
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var (value, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size)) // no trap: a constant
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }
}
