import Foundation

/// Waits for SIGINT, SIGTERM and SIGHUP, which are blocked in all threads that start later. A second SIGINT kills the
/// process: a user who presses Ctrl-C twice means it. A second SIGTERM does not, because supervisors send it to a
/// process and again to its group.
struct Signals {
    enum Event {
        /// SIGHUP: read the configuration again.
        case reload
        /// To stop, with the signal's name.
        case stop(String)
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
        case SIGHUP: return .stop("SIGHUP: the terminal was closed")
        default:
            allowInterrupt()
            return .stop(number == SIGINT ? "SIGINT" : "SIGTERM")
        }
    }

    private func allowInterrupt() {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
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
