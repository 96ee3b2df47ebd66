import CLinux
import Foundation

/// A program run by a test on a terminal of its own, which it has for input and for all output, and which can interrupt
/// it. It is killed when this object goes.
package final class TerminalProcess: Sendable {
    package let pid: pid_t
    private let name: String
    private let master: Int32
    /// The file of the terminal that the program has.
    private let terminal: String
    private let state: Monitor<State>

    private struct State: Sendable {
        var output: [UInt8] = []
        var screen: TerminalScreen
        var exit: ChildProcess.Exit?
        var isOpen = true
    }

    /// - Parameter environment: changes to this process's environment; `nil` removes a variable.
    /// - Throws: `SystemError` when it cannot be started.
    package init(
        _ executable: String, _ arguments: [String] = [], environment: [String: String?] = [:], columns: Int = 80,
        rows: Int = 24
    ) throws {
        name = executable
        state = Monitor(State(screen: TerminalScreen(columns: columns)))
        (pid, master, terminal) = try spawnOnTerminal(
            [executable] + arguments, mergedEnvironment(environment), columns: columns, rows: rows)
        try startThread { [state, master] in
            var buffer = [UInt8](repeating: 0, count: 16 * 1024)
            // EIO when the last one who had the terminal is gone.
            while let count = try? retryingInterrupts("read", { read(master, &buffer, buffer.count) }), count > 0 {
                state.update {
                    $0.output.append(contentsOf: buffer[..<count])
                    $0.screen.take(buffer[..<count])
                }
            }
            state.update {
                $0.isOpen = false
                close(master)
            }
        }
        try startThread { [state, pid] in
            waitForEnd(of: pid)
            state.update { $0.exit = takeBack(pid) }
        }
    }

    deinit {
        signal(SIGKILL)
    }

    /// The program `reelcache`, as `ReelcacheCommand` runs it.
    /// - Parameter shell: a script that runs it by `"$@"`; nil for no shell.
    package static func reelcache(
        _ arguments: [String], shell: String? = nil, environment: [String: String?] = [:], columns: Int = 80,
        rows: Int = 24
    ) throws -> TerminalProcess {
        let drawn: [String: String?] = ["TERM": "xterm", "LC_ALL": "C.UTF-8"]
        let path = try ReelcacheCommand.path()
        return try TerminalProcess(
            shell == nil ? path : "/bin/sh", (shell.map { ["-c", $0, "sh", path] } ?? []) + arguments,
            environment: ReelcacheCommand.neutral.merging(drawn) { $1 }.merging(environment) { $1 }, columns: columns,
            rows: rows)
    }

    /// All that it has written until now, with what the terminal obeys.
    package var output: String { state.read { String(decoding: $0.output, as: UTF8.self) } }

    /// What can be seen.
    package var lines: [String] { state.read { $0.screen.lines } }

    /// Whether the program has the whole screen.
    package var isFullScreen: Bool { state.read { $0.screen.isAlternate } }

    /// Whether the terminal shows what is typed, and passes on whole lines.
    package var isInLineMode: Bool {
        state.read { state in
            var modes = termios()
            guard state.isOpen, tcgetattr(master, &modes) == 0 else { return true }
            return modes.c_lflag & tcflag_t(ECHO) != 0 && modes.c_lflag & tcflag_t(ICANON) != 0
        }
    }

    /// Presses Ctrl-C.
    package func interrupt() throws {
        try state.read { state in
            if state.isOpen { try retryingInterrupts("press Ctrl-C") { write(master, [3], 1) } }
        }
    }

    /// Types a text.
    package func type(_ text: String) throws {
        let bytes = Array(text.utf8)
        try state.read { state in
            if state.isOpen { _ = try retryingInterrupts("type") { write(master, bytes, bytes.count) } }
        }
    }

    /// Makes the terminal show what is typed, and pass on whole lines, as a shell does.
    package func setLineMode() throws {
        var modes = termios()
        guard tcgetattr(master, &modes) == 0 else { throw SystemError("tcgetattr") }
        modes.c_lflag |= tcflag_t(ECHO | ICANON)
        guard tcsetattr(master, TCSANOW, &modes) == 0 else { throw SystemError("tcsetattr") }
    }

    /// From now on, the terminal takes no output.
    package func stopOutput() throws {
        let file = open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard file >= 0 else { throw SystemError("open \(terminal)") }
        defer { close(file) }
        guard tcflow(file, TCOOFF) == 0 else { throw SystemError("tcflow") }
    }

    /// Makes the window larger or smaller.
    package func resize(columns: Int, rows: Int) throws {
        try state.update { state in
            state.screen.resize(columns: columns)
            guard !state.isOpen || reel_set_terminal_size(master, UInt16(columns), UInt16(rows)) == 0 else {
                throw SystemError("resize the terminal")
            }
        }
    }

    /// Waits until what can be seen has a line that contains `text`, and returns that.
    @discardableResult
    package func waitForLine(containing text: String, within patience: Duration = .patience) throws -> String {
        try waitForScreen("a line with \"\(text)\"", within: patience) { $0.first { $0.contains(text) } }
    }

    /// Waits until `ready` returns a value for what can be seen.
    /// - Throws: `DeadlinePassed` with the screen, also as soon as nothing more can come.
    package func waitForScreen<T>(_ what: String, within patience: Duration = .patience, _ ready: ([String]) -> T?)
        throws -> T
    {
        try describingOutput {
            try state.wait(for: "\(what) from \(name)", within: patience) { state in
                if let value = ready(state.screen.lines) { return value }
                if state.isOpen { return nil }
                throw DeadlinePassed(what: "\(what) from \(name), which has ended")
            }
        }
    }

    /// Waits until it has ended and all its output is there.
    @discardableResult
    package func waitForExit(within patience: Duration = .patience) throws -> ChildProcess.Exit {
        try describingOutput { try state.wait(for: "\(name) to end", within: patience) { $0.isOpen ? nil : $0.exit } }
    }

    package func signal(_ number: Int32) {
        state.read { if $0.exit == nil { kill(pid, number) } }
    }

    private func describingOutput<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch var error as DeadlinePassed {
            error.instead = "\(lines.joined(separator: "\n"))\nall: \(output.debugDescription)"
            throw error
        }
    }
}

/// What a terminal shows of which a program writes no more than lines, and moves up and clears; or has the whole screen,
/// and writes each line to its place. When its width changes, it breaks lines anew, but for those of a whole screen.
package struct TerminalScreen: Sendable {
    private struct Row: Sendable {
        var cells: [Character] = []
        /// Whether its line goes on in the next row.
        var isContinued = false

        mutating func cut(at column: Int) { (cells, isContinued) = (Array(cells.prefix(column)), false) }
    }

    private var rows = [Row()]
    private var (row, column) = (0, 0)
    private var columns: Int
    /// What was there before the program had the whole screen.
    private var saved: (rows: [Row], row: Int, column: Int)?
    /// Of a character or a command that is not complete.
    private var rest: [UInt8] = []

    package init(columns: Int = .max) { self.columns = columns }

    /// Without the spaces at their ends, and without empty ones at the end.
    package var lines: [String] {
        let lines = rows.map(\.cells).map { row in String(row[..<(row.lastIndex { $0 != " " }.map { $0 + 1 } ?? 0)]) }
        return Array(lines[..<(lines.lastIndex { !$0.isEmpty }.map { $0 + 1 } ?? 0)])
    }

    package var isAlternate: Bool { saved != nil }

    package mutating func resize(columns: Int) {
        guard saved == nil else {
            self.columns = columns
            return
        }
        var lines: [[Character]] = [[]]
        var cursor = (line: 0, offset: 0)
        for (index, part) in rows.enumerated() {
            if index == row { cursor = (lines.count - 1, lines[lines.count - 1].count + column) }
            lines[lines.count - 1] += part.cells
            if !part.isContinued { lines.append([]) }
        }
        if rows.last?.isContinued == false { lines.removeLast() }
        (rows, self.columns) = ([], columns)
        for (index, line) in lines.enumerated() {
            if index == cursor.line { (row, column) = (rows.count + cursor.offset / columns, cursor.offset % columns) }
            var start = 0
            repeat {
                let end = min(line.count, start + columns)
                rows.append(Row(cells: Array(line[start..<end]), isContinued: end < line.count))
                start = end
            } while start < line.count
        }
        while rows.count <= row { rows.append(Row()) }
    }

    package mutating func take(_ bytes: some Sequence<UInt8>) {
        rest.append(contentsOf: bytes)
        // A character of several bytes may have come in part.
        guard let text = String(validating: rest, as: UTF8.self) else { return }
        var scalars = text.unicodeScalars[...]
        while let scalar = scalars.first {
            if scalar == "\u{1B}" {
                guard let end = scalars.dropFirst(2).firstIndex(where: { $0.properties.isAlphabetic }) else { break }
                obey(scalars[end], String(scalars[scalars.index(scalars.startIndex, offsetBy: 2)..<end]))
                scalars = scalars[scalars.index(after: end)...]
            } else {
                put(scalar)
                scalars = scalars.dropFirst()
            }
        }
        rest = Array(String(scalars).utf8)
    }

    private mutating func put(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "\r": column = 0
        case "\n":
            toNextRow()
        default:
            if column >= columns {
                rows[row].isContinued = true
                toNextRow()
                column = 0
            }
            while rows[row].cells.count <= column { rows[row].cells.append(" ") }
            rows[row].cells[column] = Character(scalar)
            column += 1
            // The whole screen has no line wrapping: the cursor stays on the last column.
            if saved != nil { column = min(column, columns - 1) }
        }
    }

    private mutating func toNextRow() {
        row += 1
        if row == rows.count { rows.append(Row()) }
    }

    private mutating func obey(_ command: Unicode.Scalar, _ parameters: String) {
        switch command {
        case "A": row = max(0, row - (Int(parameters) ?? 1))
        case "H":
            let place = parameters.split(separator: ";").map { Int($0) ?? 1 }
            (row, column) = ((place.first ?? 1) - 1, (place.dropFirst().first ?? 1) - 1)
            while rows.count <= row { rows.append(Row()) }
        case "h" where parameters == "?1049":
            saved = (rows, row, column)
            (rows, row, column) = ([Row()], 0, 0)
        case "l" where parameters == "?1049":
            if let saved { (rows, row, column) = saved }
            saved = nil
        case "K": rows[row].cut(at: column)
        case "J":
            rows[row].cut(at: column)
            rows.removeSubrange((row + 1)...)
        default: break
        }
    }
}

/// Starts the program as the leader of a session whose terminal is a new one.
private func spawnOnTerminal(_ arguments: [String], _ environment: [String], columns: Int, rows: Int) throws -> (
    pid_t, Int32, String
) {
    let master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard master >= 0 else { throw SystemError("posix_openpt") }
    do {
        var name = [CChar](repeating: 0, count: 100)
        guard grantpt(master) == 0, unlockpt(master) == 0, ptsname_r(master, &name, name.count) == 0 else {
            throw SystemError("unlockpt")
        }
        let terminal = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard reel_set_terminal_size(master, UInt16(columns), UInt16(rows)) == 0 else {
            throw SystemError("set the terminal's size")
        }
        return (try spawn(arguments, environment, terminal: terminal), master, terminal)
    } catch {
        close(master)
        throw error
    }
}
