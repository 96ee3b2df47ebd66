import CLinux
@preconcurrency import Foundation
import HTTPModel
import Reelcache

/// Where output goes, and what can be drawn there.
enum Terminal {
    static func isOne(_ descriptor: Int32) -> Bool { isatty(descriptor) != 0 }

    /// The width of standard output in characters; nil if it is not a terminal.
    static var width: Int? {
        let width = Int(reel_terminal_width(STDOUT_FILENO))
        return width > 0 ? width : nil
    }

    /// Columns and rows of standard error; nil if it is not a terminal that can draw.
    static var drawingSize: (columns: Int, rows: Int)? {
        let (columns, rows) = (Int(reel_terminal_width(STDERR_FILENO)), Int(reel_terminal_height(STDERR_FILENO)))
        let kind = ProcessInfo.processInfo.environment["TERM"] ?? ""
        return isOne(STDERR_FILENO) && columns > 0 && rows > 0 && !kind.isEmpty && kind != "dumb"
            ? (columns, rows) : nil
    }

    /// Columns of standard error, where lines are drawn; 0 if unknown.
    static var columnsOfErrors: Int { Int(reel_terminal_width(STDERR_FILENO)) }

    /// Whether the terminal rewraps lines when its width changes, as nearly all do; those named here do not.
    static var reflows: Bool {
        let environment = ProcessInfo.processInfo.environment
        let kind = environment["TERM"] ?? ""
        if environment["TMUX"] != nil { return true }
        return environment["XTERM_VERSION"] == nil
            && !["linux", "rxvt", "screen", "vt"].contains { kind.hasPrefix($0) }
    }

    /// A URL in readable form on a terminal, unchanged in a pipe.
    static func shown(_ url: String) -> String { width != nil && isUnicode ? url.readableURL : url.printable }

    /// Whether the locale has block characters.
    static var isUnicode: Bool {
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { ProcessInfo.processInfo.environment[$0] }.first {
                !$0.isEmpty
            } ?? ""
        return ["utf-8", "utf8"].contains { locale.lowercased().hasSuffix($0) }
    }

    /// Prints a line on standard error, with control characters made visible.
    static func writeError(_ line: String, end: String = "\n") { write(line.printable + end) }

    /// Writes to standard error as it is. If that fails, there is nowhere to report it.
    static func write(_ text: String) { try? FileHandle.standardError.write(contentsOf: Data(text.utf8)) }
}

/// The progress of long work: a line on standard error that is redrawn, if that is a terminal.
final class ProgressLine {
    private let isShown = Terminal.isOne(STDERR_FILENO)
    private var shownAt: ContinuousClock.Instant?
    private var block = TerminalBlock(reflows: Terminal.reflows)

    /// Redraws it, though not more often than people can read.
    func show(_ text: @autoclosure () -> String) {
        guard isShown, shownAt.map({ .now - $0 > .milliseconds(200) }) ?? true else { return }
        let columns = Terminal.columnsOfErrors
        // The last column stays free: behind it, terminals differ.
        let line = columns > 0 ? text().cut(toColumns: columns - 1, isUnicode: Terminal.isUnicode) : text()
        Terminal.write(block.show([line], columns: columns))
        shownAt = .now
    }

    func clear() { Terminal.write(block.clear(columns: Terminal.columnsOfErrors)) }

    /// `get: 1.00 GB of 4.00 GB (25 %)`
    func show(_ what: String, _ done: Int64, of total: Int64?) {
        show(
            "\(what): \(done.size)"
                + (total.map { total in
                    " of \(total.size) (\(total > 0 ? Int(saturating: Double(done) / Double(total) * 100) : 100) %)"
                } ?? ""))
    }
}
