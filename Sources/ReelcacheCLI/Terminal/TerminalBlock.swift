/// Lines at the bottom of a terminal that are redrawn. Between drawings the cursor is at the beginning of the last line.
///
/// When they become narrower, most terminals rewrap lines (*reflow*), so that a line takes several rows; others cut
/// lines off. Moving up too many rows would clear other output; too few would leave parts of the block behind.
package struct TerminalBlock: Sendable {
    /// How many columns each drawn line occupies.
    package private(set) var widths: [Int] = []
    private let reflows: Bool

    /// - Parameter reflows: whether the terminal rewraps lines when its width changes.
    package init(reflows: Bool = true) { self.reflows = reflows }

    /// The output that replaces the drawn lines by these. Each of them must be shorter than the terminal is wide.
    /// - Parameter columns: the width of the terminal now.
    package mutating func show(_ lines: [String], columns: Int) -> String {
        defer { widths = lines.map(\.columns) }
        // Lines that the terminal has wrapped are cleared first: overwriting a row would leave the rest in the next.
        let beginning = home(columns) + (isBroken(columns) ? Self.clearBelow : "")
        return beginning + lines.map { $0 + Self.clearLine }.joined(separator: "\r\n") + Self.clearBelow + "\r"
    }

    /// The output that removes the block and leaves the cursor where the block began.
    package mutating func clear(columns: Int) -> String {
        defer { widths = [] }
        return widths.isEmpty ? "" : home(columns) + Self.clearBelow
    }

    /// Moves to the beginning of the first line. The cursor is at the beginning of the last line, however many rows
    /// that line occupies.
    private func home(_ columns: Int) -> String {
        let rows = widths.dropLast().reduce(0) { $0 + rowCount(of: $1, columns) }
        return rows > 0 ? "\r\u{1B}[\(rows)A" : "\r"
    }

    private func isBroken(_ columns: Int) -> Bool { widths.contains { rowCount(of: $0, columns) > 1 } }

    private func rowCount(of width: Int, _ columns: Int) -> Int {
        reflows && columns > 0 ? max(1, (width + columns - 1) / columns) : 1
    }

    private static let clearLine = "\u{1B}[K"
    private static let clearBelow = "\u{1B}[J"
}
