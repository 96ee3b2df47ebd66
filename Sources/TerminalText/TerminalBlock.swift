/// Lines at the bottom of a terminal that are written again and again. Behind them the cursor waits at the beginning of
/// the last one.
///
/// Most terminals break lines anew when they become narrower (*reflow*), so that a line takes several rows; others cut
/// them off. To go up by too many rows clears what is not of this, to go up by too few leaves parts of it behind.
package struct TerminalBlock: Sendable {
    /// How many columns each line takes that is there.
    private var widths: [Int] = []
    private let reflows: Bool

    /// - Parameter reflows: whether the terminal breaks lines anew when its width changes.
    package init(reflows: Bool = true) { self.reflows = reflows }

    package var isEmpty: Bool { widths.isEmpty }

    /// What to write so that these lines, each shorter than the terminal is wide, are there instead of those before.
    /// - Parameter columns: how wide the terminal is now.
    package mutating func show(_ lines: [String], columns: Int) -> String {
        defer { widths = lines.map(\.columns) }
        // What was broken is cleared as a whole first: a row that is written over would still go on in the next.
        let beginning = home(columns) + (isBroken(columns) ? Self.clearBelow : "")
        return beginning + lines.map { $0 + Self.clearLine }.joined(separator: "\r\n") + Self.clearBelow + "\r"
    }

    /// What to write so that nothing of it is left, and the cursor stands where it began.
    package mutating func clear(columns: Int) -> String {
        defer { widths = [] }
        return isEmpty ? "" : home(columns) + Self.clearBelow
    }

    /// To the first column of the first line. The cursor is at the beginning of the last one, however many rows that
    /// takes.
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
