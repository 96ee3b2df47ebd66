import Foundation

/// SIGINT and SIGTERM, waited for instead of died of. Blocked in all threads that start later. A second SIGINT kills: whoever
/// presses Ctrl-C twice means it. A second SIGTERM does not, as supervisors send it to a process and to its group.
struct TerminationSignals {
    private let set: sigset_t

    init() {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
        self.set = set
    }

    /// Waits for one of them.
    /// - Returns: its name.
    func wait() -> String {
        var (set, number) = (set, Int32(0))
        sigwait(&set, &number)
        var other = sigset_t()
        sigemptyset(&other)
        sigaddset(&other, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &other, nil)
        return number == SIGINT ? "SIGINT" : "SIGTERM"
    }
}
