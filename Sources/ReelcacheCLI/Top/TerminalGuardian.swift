import Administration
import CLinux
import ControlAPI
import Foundation
import HTTPModel

/// A process that gives the terminal back if this one cannot: it was killed by SIGKILL, or has crashed. It ends with
/// this object, or with this process. Where this process leads the terminal's session, the system closes the terminal
/// with it, and nothing is left to be done.
struct TerminalGuardian: ~Copyable {
    private let pid: pid_t
    private let news: Int32

    /// - Parameters:
    ///   - output: of the terminal; it does not block.
    ///   - saved: the modes to restore.
    ///   - taken: those that this process sets; others are the shell's, and stay.
    /// - Throws: `ControlError` if the process has no descriptor left, or the system starts no process.
    init(output: Int32, saved: termios, taken: termios) throws {
        var ends: [Int32] = [-1, -1]
        guard reel_pipe(&ends) == 0 else { throw ControlError("no pipe can be created: \(String(errno: errno))") }
        defer { close(ends[0]) }
        var (saved, taken) = (saved, taken)
        let pid = reel_guard_terminal(ends[0], output, ScreenPainter.leave, &saved, &taken)
        guard pid > 0 else {
            let reason = String(errno: errno)
            close(ends[1])
            throw ControlError("no process can be started: \(reason)")
        }
        (self.pid, news) = (pid, ends[1])
    }

    /// Tells it whether this process has the screen.
    func note(hasScreen: Bool) {
        var byte: UInt8 = hasScreen ? 1 : 0
        _ = write(news, &byte, 1)
    }

    deinit {
        close(news)
        while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    }
}
