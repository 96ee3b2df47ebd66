import Foundation
import Synchronization

/// SIGINT and SIGTERM, as a flag that long work checks, so that it can stop cleanly: it leaves no temporary file and
/// closes the cache. A second SIGINT kills the process.
final class Interruption: Sendable {
    /// The signal that interrupted the command; 0 for none.
    private static let signal = Atomic<Int32>(0)

    /// Create it before anything that starts threads.
    init() {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        Thread.detachNewThread { [set] in
            var (set, number) = (set, Int32(0))
            sigwait(&set, &number)
            Self.signal.store(number, ordering: .relaxed)
            sigemptyset(&set)
            sigaddset(&set, SIGINT)
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            // A thread must be there to receive the second SIGINT.
            while true { pause() }
        }
    }

    var isRequested: Bool { Self.signal.load(ordering: .relaxed) != 0 }

    /// Ends the process by the signal that interrupted the command, if one did: so the shell's loops end with it
    /// (https://www.cons.org/cracauer/sigint.html). Once the work is cleaned up.
    static func endBySignal() {
        let number = signal.load(ordering: .relaxed)
        guard number > 0 else { return }
        fflush(nil)
        Glibc.signal(number, SIG_DFL)
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, number)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        raise(number)
    }
}
