import Foundation
import Synchronization

/// SIGINT and SIGTERM, as a wish that long work asks about, so that it can end in order: no temporary file is left, the
/// cache is closed. A second SIGINT kills.
final class Interruption: Sendable {
    private let wish = Mutex(false)

    /// Before anything that starts threads.
    init() {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        Thread.detachNewThread { [self, set] in
            var (set, number) = (set, Int32(0))
            sigwait(&set, &number)
            wish.withLock { $0 = true }
            sigemptyset(&set)
            sigaddset(&set, SIGINT)
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            // Some thread has to be there for the second one.
            while true { pause() }
        }
    }

    var isWished: Bool { wish.withLock { $0 } }
}
