extension String {
    /// How many columns of a terminal the text occupies.
    package var columns: Int { reduce(0) { $0 + $1.columns } }

    /// The text cut to a number of columns, with a mark at the end.
    package func cut(toColumns width: Int, isUnicode: Bool) -> String {
        guard columns > width else { return self }
        let mark = isUnicode ? "…" : "~"
        var (text, taken) = ("", 0)
        for character in self {
            guard taken + character.columns < width else { break }
            text.append(character)
            taken += character.columns
        }
        return width > 0 ? text + mark : ""
    }

    /// The text cut in the middle to a number of columns, for texts that differ at their ends.
    package func cutInside(toColumns width: Int, isUnicode: Bool) -> String {
        guard columns > width else { return self }
        guard width > 2 else { return cut(toColumns: width, isUnicode: isUnicode) }
        let tail = (width - 1) * 2 / 3
        let end = String(String(reversed()).prefix(toColumns: tail).reversed())
        return prefix(toColumns: width - 1 - tail) + (isUnicode ? "…" : "~") + end
    }

    /// The same, but never within an encoded byte: a part of one would stand for nothing, or for another character.
    package func cutInsideURL(toColumns width: Int, isUnicode: Bool) -> String {
        let cut = cutInside(toColumns: width, isUnicode: isUnicode), mark: Character = isUnicode ? "…" : "~"
        guard cut != self, let place = cut.lastIndex(of: mark) else { return cut }
        let (begin, end) = (cut[..<place], cut[cut.index(after: place)...])
        let whole = begin.count - (begin.suffix(2).lastIndex(of: "%").map { begin[$0...].count } ?? 0)
        // How much of an escape the end begins with, which the text before it has begun.
        let before = dropLast(end.count).suffix(2)
        let rest = before.lastIndex(of: "%").map { 3 - before[$0...].count } ?? 0
        return begin.prefix(whole) + String(mark) + end.dropFirst(rest)
    }

    /// The longest prefix that fits.
    private func prefix(toColumns width: Int) -> String {
        var (text, taken) = ("", 0)
        for character in self {
            taken += character.columns
            if taken > width { break }
            text.append(character)
        }
        return text
    }

    /// The text wrapped into lines of a number of columns; a longer word has a line of its own.
    package func folded(toColumns width: Int) -> [String] {
        split(separator: " ").reduce(into: []) { lines, word in
            if let last = lines.last, last.columns + 1 + String(word).columns <= width {
                lines[lines.count - 1] = last + " " + word
            } else {
                lines.append(String(word))
            }
        }
    }

    /// The text padded with spaces at its end, or at its beginning if `width` is negative. Longer texts stay unchanged.
    package func padded(toColumns width: Int) -> String {
        let spaces = String(repeating: " ", count: Swift.max(0, abs(width) - columns)) // no trap: a column's width
        return width < 0 ? spaces + self : self + spaces
    }
}

private extension Character {
    /// 2 for East Asian scripts and emoji, 0 for marks without a letter.
    var columns: Int {
        guard let first = unicodeScalars.first else { return 0 }
        if first.isASCII { return 1 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        let isWide =
            first.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}")
            || Self.wide.contains { $0 ~= first.value }
        return isWide ? 2 : 1
    }

    /// The large blocks of Unicode's East_Asian_Width W and F.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
        0xA960...0xA97F, 0xAC00...0xD7A3,
        0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF,
        0x20000...0x3FFFD,
    ]
}
