import HTTPModel

/// Reads durations of playback in feeds: `3600`, `1:00:00`, `60:00`, `1h 2m`, `PT1H`, `61.5`.
enum FeedDuration {
    /// - Returns: a duration above zero; nil for anything else, and beyond `PlaylistLimits.seconds`.
    static func duration(_ written: String) -> Duration? {
        guard written.utf8.count <= 64 else { return nil }
        let text = String(ASCII.trimmed(written.utf8.filter { !ASCII.isXMLSpace($0) || $0 == ASCII.space }).text)
        let read =
            text.first == "p" || text.first == "P"
            ? ISO8601.duration(text.uppercased())
            : text.contains(":") ? clock(text) : units(text.lowercased())
        guard let read, read > .zero, read <= .seconds(PlaylistLimits.seconds) else { return nil }
        return read
    }

    /// Reads milliseconds, as in XSPF.
    static func milliseconds(_ written: String) -> Duration? {
        let count = ASCII.decimal(ASCII.trimmed(written).utf8, upTo: PlaylistLimits.seconds *| 1000)
        return count.flatMap { $0 > 0 ? .milliseconds($0) : nil }
    }

    /// Reads hours, minutes and seconds, or minutes and seconds. Ignores a fourth part, which counts frames.
    private static func clock(_ text: String) -> Duration? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).prefix(3).map(part)
        return parts.reduce(Duration.zero as Duration?) { total, part in
            total.flatMap { total in part.map { total * 60 + $0 } }
        }
    }

    /// nil for an empty part.
    private static func part(_ text: Substring) -> Duration? {
        let digits = ASCII.trimmed(text)
        return digits.isEmpty ? .zero : MediaNumbers.seconds(Array(digits.replacing(",", with: ".").utf8))
    }

    /// Reads numbers that are followed by units. A number alone counts seconds.
    private static func units(_ text: String) -> Duration? {
        var rest = text[...], total = Duration.zero
        while let first = rest.first(where: { $0 != " " && $0 != "," }) {
            rest = rest.drop { $0 == " " || $0 == "," }
            let digits = rest.prefix { $0.isASCII && $0.isNumber || $0 == "." || $0 == "," }
            guard first.isASCII, !digits.isEmpty, let number = part(digits) else { return nil }
            rest = rest.dropFirst(digits.count).drop { $0 == " " }
            let unit = rest.prefix { $0.isLetter || $0 == "." }
            guard let seconds = seconds(unit) else { return nil }
            rest = rest.dropFirst(unit.count)
            total += number * seconds
        }
        return total
    }

    private static func seconds(_ unit: Substring) -> Int? {
        switch unit.prefix(3) {
        case "", "s", "s.", "sec", "sek", "seg": 1
        case "m", "m.", "min", "mn": 60
        case "h", "h.", "hr", "hrs", "hou", "std", "stu", "heu", "hor", "ore": 3600
        default: nil
        }
    }
}

extension Collection<UInt8> {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
