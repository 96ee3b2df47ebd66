import Administration
import CLinux
import ControlAPI
import Foundation
import Glibc
import HTTPModel

/// The terminal while a command has all of it. What was on the screen, and the terminal's modes, are restored by
/// `leave`, which may be called any number of times; if this process ends without it, by a `TerminalGuardian`.
///
/// Nothing blocks: what the terminal does not take yet waits here.
final class FullScreen {
    /// Standard output with an open file of its own, whose writing does not block; the shell's still does.
    let output: Int32
    private let saved: termios
    private let taken: termios
    private let guardian: TerminalGuardian
    private var waiting: [UInt8] = []
    private var isEntered = false

    /// Whether standard input and output are a terminal that can draw.
    static var isPossible: Bool {
        let kind = ProcessInfo.processInfo.environment["TERM"] ?? ""
        return Terminal.isOne(STDIN_FILENO) && Terminal.isOne(STDOUT_FILENO) && !kind.isEmpty && kind != "dumb"
    }

    /// Whether to use colours: see https://no-color.org.
    static var hasStyles: Bool { (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty }

    /// Create it after signals have been blocked.
    /// - Throws: `ControlError` if the terminal cannot be used.
    init() throws {
        // After su, the first belongs to another user.
        let files = ["/proc/self/fd/1", "/dev/tty"].lazy.map { (path: String) in
            open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        }
        guard let output = files.first(where: { $0 >= 0 }) else {
            throw ControlError("the terminal cannot be opened: \(String(errno: errno))")
        }
        var modes = termios()
        guard tcgetattr(STDIN_FILENO, &modes) == 0 else {
            throw ControlError("the terminal's modes cannot be read: \(String(errno: errno))")
        }
        (self.output, saved) = (output, modes)
        // Keys arrive one by one and are not shown; Ctrl-C and Ctrl-Z still send their signals.
        modes.c_lflag &= ~tcflag_t(ICANON | ECHO)
        modes.c_iflag &= ~tcflag_t(IXON)
        taken = modes
        guardian = try TerminalGuardian(output: output, saved: saved, taken: taken)
    }

    deinit { close(output) }

    /// Columns and rows; a terminal that does not know them has those of the oldest ones.
    var size: (columns: Int, rows: Int) {
        let (columns, rows) = (Int(reel_terminal_width(STDOUT_FILENO)), Int(reel_terminal_height(STDOUT_FILENO)))
        return (columns > 0 ? columns : 80, rows > 0 ? rows : 24)
    }

    /// Takes over the screen, or again after this process was stopped: by then the shell has set modes of its own.
    func enter() {
        var modes = taken
        tcsetattr(STDIN_FILENO, TCSANOW, &modes)
        guardian.note(hasScreen: true)
        let start = isEntered ? "" : ScreenPainter.enter
        isEntered = true
        write(start + ScreenPainter.setUp)
    }

    /// Gives the screen back.
    func leave() {
        guard isEntered else { return }
        (isEntered, waiting) = (false, [])
        var modes = saved
        reel_give_back_terminal(output, ScreenPainter.leave, &modes)
        guardian.note(hasScreen: false)
    }

    /// Whether the terminal is to show something: it is taken over, and has taken all that was written. Otherwise
    /// what is drawn would be old by the time it is shown.
    var isReady: Bool { isEntered && waiting.isEmpty }

    /// Whether to call `flush` once `output` can be written to.
    var hasWaiting: Bool { !waiting.isEmpty }

    /// Writes to the terminal as it is.
    func write(_ text: String) {
        waiting += text.utf8
        flush()
    }

    /// Writes what waits, as far as the terminal takes it.
    func flush() {
        while !waiting.isEmpty {
            let count = Glibc.write(output, waiting, waiting.count)
            if count > 0 {
                waiting.removeFirst(count)
            } else if errno == EAGAIN {
                return
            } else if errno != EINTR {
                // The terminal is gone, and the signal for that is under way.
                waiting = []
            }
        }
    }
}
