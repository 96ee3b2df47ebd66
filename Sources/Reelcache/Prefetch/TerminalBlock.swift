/// Lines at the bottom of a terminal that are written again and again. Behind them the cursor waits in the last one.
package struct TerminalBlock: Sendable {
    /// How many lines are there.
    private var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// What to write so that these lines, each shorter than the terminal is wide, are there instead of those before.
    package mutating func show(_ lines: [String]) -> String {
        defer { count = lines.count }
        return home + lines.map { $0 + Self.clearLine }.joined(separator: "\r\n") + Self.clearBelow
    }

    /// What to write so that nothing of it is left, and the cursor stands where it began.
    package mutating func clear() -> String {
        defer { count = 0 }
        return isEmpty ? "" : home + Self.clearBelow
    }

    /// To the first column of the first line. Some terminals break long lines anew when they become narrower; then parts of old ones are left.
    /// To go up further would, in all others, clear what is not of this.
    private var home: String { count > 1 ? "\r\u{1B}[\(count - 1)A" : "\r" }

    private static let clearLine = "\u{1B}[K"
    private static let clearBelow = "\u{1B}[J"
}
