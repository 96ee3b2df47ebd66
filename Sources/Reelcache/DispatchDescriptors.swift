import Dispatch
import Glibc
import Synchronization

/// The descriptors of libdispatch: an epoll instance, an eventfd, and a timerfd.
///
/// libdispatch creates them when the process sets its first timer, and ends the process (SIGILL) if it cannot. So
/// they are created before anything else may have used up the last ones.
package enum DispatchDescriptors {
    private static let count = 3

    /// Creates them, once per process.
    /// - Throws: `ProxyError` if too few descriptors are left.
    package static func make() throws(ProxyError) {
        guard areMade.load(ordering: .acquiring) || hasRoom() else {
            throw .tooFewFiles(
                "this process may open no more files: raise its limit (ulimit -n 1024, or LimitNOFILE=1024 in a systemd unit)"
            )
        }
        _ = made
        areMade.store(true, ordering: .releasing)
    }

    private static let areMade = Atomic(false)

    private static let made: Void = {
        let fired = DispatchSemaphore(value: 0)
        let timer = DispatchSource.makeTimerSource()
        timer.setEventHandler { fired.signal() }
        timer.schedule(deadline: .now())
        timer.resume()
        fired.wait()
        timer.cancel()
    }()

    private static func hasRoom() -> Bool {
        let tried = (0..<count).map { _ in open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY) }
        for descriptor in tried where descriptor >= 0 { close(descriptor) }
        return tried.allSatisfy { $0 >= 0 }
    }
}
