import Glibc
import HTTPModel

/// The program that runs this one as a service, such as systemd, and waits until it is ready (sd_notify(3)).
enum ServiceManager {
    /// Tells it that the proxy serves, so that what is started after it finds it. Without a service manager, or with one
    /// that does not wait, this does nothing.
    static func notifyReady() { notify("READY=1") }

    /// Tells it that the proxy stops, and that this may take so long: otherwise the manager would kill it after its own
    /// time (`TimeoutStopSec`).
    static func notifyStopping(within time: Duration) {
        let microseconds = (time.components.seconds +| closingSeconds) *| 1_000_000
        notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=\(microseconds)")
    }

    /// To let hooks end (`ProgramQueue.close`), and to save and close the cache.
    private static let closingSeconds: Int64 = 45

    /// - Parameter socket: the address of its socket; a leading `@` stands for the abstract namespace.
    private static func notify(_ text: String, _ socket: String? = getenv("NOTIFY_SOCKET").map { String(cString: $0) })
    {
        guard let socket, var address = Address(socket) else { return }
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let message = Array(text.utf8)
        _ = withUnsafePointer(to: &address.value) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, message, message.count, Int32(MSG_NOSIGNAL), $0, address.length)
            }
        }
    }

    private struct Address {
        var value = sockaddr_un()
        let length: socklen_t

        /// nil if it is none, or too long for one.
        init?(_ text: String) {
            var path = Array(text.utf8)
            guard path.first == UInt8(ascii: "/") || path.first == UInt8(ascii: "@"),
                path.count < MemoryLayout.size(ofValue: value.sun_path)
            else { return nil }
            if path[0] == UInt8(ascii: "@") { path[0] = 0 }
            let start = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
            // no trap: the path is short
            length = socklen_t(start + path.count)
            value.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &value.sun_path) { $0.copyBytes(from: path) }
        }
    }
}
