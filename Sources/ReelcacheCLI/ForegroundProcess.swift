import Administration
import ControlAPI
import Foundation
import HTTPModel

/// A player or an editor, which runs in the foreground: it shares this process's terminal and process group, so that it
/// can read the keyboard and Ctrl-C reaches it.
struct ForegroundProcess {
    private let pid: pid_t
    private let signals: ForegroundSignals
    private let terminal = TerminalMode()

    /// Starts the program.
    /// - Parameter advice: what to do if it cannot be started.
    /// - Throws: `ControlError` if the system refuses.
    init(
        _ path: String, _ arguments: [String], environment: [String: String], signals: ForegroundSignals,
        orElse advice: String
    ) throws {
        self.signals = signals
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The program must not inherit the signals that this process blocks or ignores.
        var set = sigset_t()
        sigemptyset(&set)
        posix_spawnattr_setsigmask(&attributes, &set)
        sigaddset(&set, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &set)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        let words = Self.copies([path] + arguments)
        let variables = Self.copies(environment.map { "\($0)=\($1)" })
        defer { for word in words + variables { free(word) } }
        var pid = pid_t()
        let code = posix_spawn(&pid, path, nil, &attributes, words, variables)
        guard code == 0 else { throw ControlError("cannot start \(path): \(String(errno: code)); \(advice)") }
        self.pid = pid
    }

    /// C strings, ended by a null pointer.
    private static func copies(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }

    /// Waits until the program has ended. Passes on signals that other processes send to this one; a Ctrl-C in the
    /// terminal reaches the program directly.
    /// - Returns: the program's exit code, or 128 plus the number of the signal that ended it.
    func waitForEnd() -> Int32 {
        while true {
            if let code = takenBack { return code }
            switch signals.wait() {
            case .signal(let number, isFromTerminal: false): kill(pid, number)
            case .signal, .childChanged, .nothing: break
            }
        }
    }

    private var takenBack: Int32? {
        var status: Int32 = 0
        let result = waitpid(pid, &status, WNOHANG)
        // No other code waits for the program. If its exit code is lost nevertheless, report a failure.
        if result < 0 { return errno == EINTR ? nil : 1 }
        guard result == pid else { return nil }
        let signal = status & 0x7F
        guard signal != 0 else { return (status >> 8) & 0xFF }
        // A program that a signal killed could not restore the terminal.
        terminal.restore()
        return 128 + signal // no trap: less than 128
    }
}

extension ForegroundProcess {
    /// The terminal's settings before a program changed them.
    private struct TerminalMode {
        private let settings: termios?

        init() {
            var settings = termios()
            self.settings = tcgetattr(STDIN_FILENO, &settings) == 0 ? settings : nil
        }

        /// Does nothing in the background, where the system would stop this process.
        func restore() {
            guard var settings, tcgetpgrp(STDIN_FILENO) == getpgrp() else { return }
            tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        }
    }
}

/// Signals for a program in the foreground, or that end its proxy: received here instead of ending this process. Blocks
/// them in all threads that start later.
struct ForegroundSignals {
    enum Event {
        /// - Parameter isFromTerminal: the terminal sent it to the whole foreground process group, with the program.
        case signal(Int32, isFromTerminal: Bool)
        case childChanged
        case nothing
    }

    private static let stopping = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
    private let set: sigset_t

    init() {
        var set = sigset_t()
        sigemptyset(&set)
        for number in Self.stopping + [SIGCHLD] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
        // If SIGCHLD is ignored, the exit codes of children are lost.
        signal(SIGCHLD, SIG_DFL)
        self.set = set
    }

    /// Whether a signal to end this process is pending, before the program is started.
    var isEndRequested: Bool {
        var pending = sigset_t()
        guard sigpending(&pending) == 0 else { return false }
        return Self.stopping.contains { sigismember(&pending, $0) == 1 }
    }

    /// Waits for the next signal.
    func wait(milliseconds: Int = 60_000) -> Event {
        var (set, info) = (set, siginfo_t())
        // no trap: constants of callers
        var limit = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
        let number = sigtimedwait(&set, &info, &limit)
        switch number {
        case -1: return .nothing
        case SIGCHLD: return .childChanged
        // sigaction(2): a code above 0 means that the kernel sent it.
        default: return .signal(number, isFromTerminal: info.si_code > 0)
        }
    }

    /// Lets a second Ctrl-C end this process at once.
    func allowInterrupt() {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }
}
