import Foundation

/// A listening socket of 127.0.0.1 that a test passes to a program as systemd does (sd_listen_fds(3)). Connections wait
/// in it while no program accepts them.
package final class PassedSocket: Sendable {
    package let port: Int
    private let descriptor: Int32

    package init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && listen(descriptor, 1024) == 0
                    && getsockname(descriptor, $0, &size) == 0 ? 0 : errno
            }
        }
        guard code == 0 else { throw SystemError("listen", code) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        self.descriptor = descriptor
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit { close(descriptor) }

    /// Starts a program that inherits the socket.
    /// - Parameter count: how many sockets it is told of; they are all this one.
    package func start(_ arguments: [String], count: Int = 1, environment: [String: String?] = [:]) throws
        -> ChildProcess
    {
        // The number of the process is known only to itself: a shell takes it, then becomes the program.
        let redirections = (0..<count).map { "\(3 + $0)<&\(Self.inherited)" }.joined(separator: " ")
        let script =
            "export LISTEN_PID=$$ LISTEN_FDS=\(count) LISTEN_FDNAMES=http; exec \"$@\" \(redirections) \(Self.inherited)<&-"
        return try ChildProcess(
            "/bin/bash", ["-c", script, "bash", try ReelcacheCommand.path()] + arguments,
            environment: ReelcacheCommand.neutral.merging(environment) { $1 }, inheriting: (descriptor, Self.inherited))
    }

    /// Starts a program that has the socket as the descriptor `inherited`.
    package func hand(to executable: String, _ arguments: [String]) throws -> ChildProcess {
        try ChildProcess(executable, arguments, inheriting: (descriptor, Self.inherited))
    }

    /// Starts nginx, which takes the socket as one that an older nginx left to it.
    package func startNginx(configuration: String) throws -> ChildProcess {
        try ChildProcess(
            Self.nginx, ["-c", configuration, "-e", "stderr"], environment: ["NGINX": "\(Self.inherited);"],
            inheriting: (descriptor, Self.inherited))
    }

    /// Whether tests that need nginx run: not without it, except where everything is to be tested.
    package static let hasNginx = access(nginx, X_OK) == 0 || ProcessInfo.processInfo.environment["CI"] != nil
    private static let nginx = "/usr/sbin/nginx"

    /// Where the shell has it, clear of those that bash uses itself.
    package static let inherited: Int32 = 63
}
