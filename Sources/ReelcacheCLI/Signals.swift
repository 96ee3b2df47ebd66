import Foundation

/// Waits for SIGINT, SIGTERM and SIGHUP, which are blocked in all threads that start later. After the first that stops
/// the process, the next ends the wait for running responses, and kills the process a second later if it is still
/// there, or at a further signal.
struct Signals: Sendable {
    enum Event {
        /// SIGHUP: read the configuration again.
        case reload
        /// To stop, with the signal's name; `isInHurry` if a person waits for the end.
        case stop(String, isInHurry: Bool)
    }

    private let set: sigset_t
    /// Whether SIGHUP may mean that the terminal was closed: not without a terminal, nor after `nohup`.
    private let followsTerminal: Bool

    init() {
        followsTerminal = Self.hasTerminal && !Self.isHangupIgnored
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
        self.set = set
    }

    /// Waits for the next signal.
    /// - Returns: nil if none has arrived in that time.
    func wait(seconds: Int) -> Event? {
        var (set, limit) = (set, timespec(tv_sec: seconds, tv_nsec: 0))
        let number = sigtimedwait(&set, nil, &limit)
        switch number {
        case -1: return nil
        case SIGHUP where !(followsTerminal && !Self.hasTerminal): return .reload
        case SIGHUP: return .stop("SIGHUP: the terminal was closed", isInHurry: true)
        case SIGINT: return .stop("SIGINT", isInHurry: true)
        default: return .stop("SIGTERM", isInHurry: false)
        }
    }

    /// Calls back, on a thread of its own, at the next SIGINT or SIGTERM after the one that stops the process, and kills
    /// the process if it has not ended a second later. Supervisors send SIGTERM to a process and again to its group:
    /// within a second, it is the same.
    func onRepetition(_ hurry: @escaping @Sendable () -> Void) {
        let began = ContinuousClock.now
        Thread.detachNewThread {
            var (set, number) = (sigset_t(), Int32(0))
            sigemptyset(&set)
            for number in [SIGINT, SIGTERM] { sigaddset(&set, number) }
            repeat { sigwait(&set, &number) } while number == SIGTERM && ContinuousClock.now - began < .seconds(1)
            hurry()
            // What is left is to save: if that does not end, the next start recovers. A further signal does not wait.
            var second = timespec(tv_sec: 0, tv_nsec: 900_000_000)
            _ = sigtimedwait(&set, nil, &second)
            signal(number, SIG_DFL)
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
            raise(number)
        }
    }

    /// Whether this process has a controlling terminal.
    private static var hasTerminal: Bool {
        let terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard terminal >= 0 else { return false }
        close(terminal)
        return true
    }

    private static var isHangupIgnored: Bool {
        var action = sigaction()
        guard sigaction(SIGHUP, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
