/// A line of a full-screen view.
package struct ScreenLine: Sendable, Equatable {
    package enum Style: Sendable, Equatable { case plain, heading, selected, faint, warning }

    package var text: String
    package var style: Style

    package init(_ text: String, _ style: Style = .plain) { (self.text, self.style) = (text, style) }
}

/// Writes a full-screen view to a terminal: only the lines that have changed, so that nothing flickers.
package struct ScreenPainter: Sendable {
    private let hasStyles: Bool
    private var shown: [ScreenLine] = []
    private var size: (columns: Int, rows: Int)?

    /// Switches to the alternate screen. Once only: a second time would forget where the cursor was before.
    package static let enter = "\u{1B}[?1049h"
    /// Clears it, without cursor and line wrapping, with pasted text marked as such.
    package static let setUp = "\u{1B}[?25l\u{1B}[?7l\u{1B}[?2004h\u{1B}[H\u{1B}[2J"
    /// Undoes both: what was on the screen before is there again.
    package static let leave = "\u{1B}[m\u{1B}[?2004l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

    private static let clearScreen = "\u{1B}[m\u{1B}[H\u{1B}[2J"
    private static let clearLine = "\u{1B}[K"

    /// - Parameter hasStyles: whether lines may differ in colour and weight.
    package init(hasStyles: Bool) { self.hasStyles = hasStyles }

    /// The output that makes the screen show these lines, and nothing else. Each of them must fit.
    package mutating func paint(_ lines: [ScreenLine], columns: Int, rows: Int) -> String {
        var output = ""
        if size.map({ $0 != (columns, rows) }) ?? true {
            (shown, size) = ([], (columns, rows))
            output = Self.clearScreen
        }
        let lines = Array(lines.prefix(max(0, rows)))
        for row in 0..<max(lines.count, shown.count) {
            let line = row < lines.count ? lines[row] : ScreenLine("")
            let former = row < shown.count ? shown[row] : ScreenLine("")
            guard line != former else { continue }
            // Clear first: after a full line, the cursor stands on its last character.
            output += "\u{1B}[\(row + 1);1H" + Self.clearLine + styled(line)
        }
        shown = lines
        return output
    }

    /// Forgets what the screen shows: everything is written again.
    package mutating func forget() { size = nil }

    private func styled(_ line: ScreenLine) -> String {
        guard hasStyles, let code = line.style.code, !line.text.isEmpty else { return line.text }
        return "\u{1B}[\(code)m\(line.text)\u{1B}[m"
    }
}

extension ScreenLine.Style {
    /// The graphic rendition (ECMA-48 §8.3.117).
    fileprivate var code: String? {
        switch self {
        case .plain: nil
        case .heading: "1"
        case .selected: "7"
        case .faint: "2"
        case .warning: "31"
        }
    }
}
