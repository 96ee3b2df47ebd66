import Foundation
import Synchronization

/// SIGINT and SIGTERM, as a flag that long work checks, so that it can stop cleanly: it leaves no temporary file and
/// closes the cache. A second SIGINT kills the process.
final class Interruption: Sendable {
    private let requested = Mutex(false)

    /// Create it before anything that starts threads.
    init() {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        Thread.detachNewThread { [self, set] in
            var (set, number) = (set, Int32(0))
            sigwait(&set, &number)
            requested.withLock { $0 = true }
            sigemptyset(&set)
            sigaddset(&set, SIGINT)
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            // A thread must be there to receive the second SIGINT.
            while true { pause() }
        }
    }

    var isRequested: Bool { requested.withLock { $0 } }
}
