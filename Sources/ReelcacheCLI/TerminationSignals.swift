import Foundation

/// SIGINT and SIGTERM, waited for instead of died of. Blocked in all threads that start later; a second one kills.
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
        // Whoever asks twice means it.
        var other = sigset_t()
        sigemptyset(&other)
        sigaddset(&other, SIGINT)
        sigaddset(&other, SIGTERM)
        pthread_sigmask(SIG_UNBLOCK, &other, nil)
        return number == SIGINT ? "SIGINT" : "SIGTERM"
    }
}
