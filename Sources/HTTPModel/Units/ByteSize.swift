/// A number of bytes as people write it: `20GB` (10⁹), `4MiB` (2²⁰), `1.5 GB`, `500000`.
package struct ByteSize: Sendable, Equatable, CustomStringConvertible {
    package let bytes: Int64

    package init(bytes: Int64) { self.bytes = bytes }

    /// Parses a size; nil if it is malformed, negative, or out of range.
    package init?(_ text: String) {
        let trimmed = text.filter { $0 != " " && $0 != "_" }
        let digits = trimmed.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let number = Double(digits), number.isFinite,
            let factor = Self.factors[trimmed.dropFirst(digits.count).lowercased()]
        else { return nil }
        let bytes = number * factor
        guard bytes < 9.2e18, let whole = Int64(whole: bytes.rounded()) else { return nil }
        self.bytes = whole
    }

    private static let factors: [String: Double] = [
        "": 1, "b": 1,
        "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
        "kib": 1024, "mib": 1_048_576, "gib": 1_073_741_824, "tib": 1_099_511_627_776,
    ]

    /// Three significant digits and a decimal unit: `1.23 GB`.
    package var description: String {
        let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"]
        var (value, unit) = (Double(bytes), 0)
        while value >= 999.5, unit < units.count - 1 { (value, unit) = (value / 1000, unit + 1) }
        guard unit > 0 else { return bytes == 1 ? "1 byte" : "\(bytes) bytes" }
        let decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0
        let scale: Int64 = decimals == 0 ? 1 : decimals == 1 ? 10 : 100
        let rounded = Int64(saturating: (value * Double(scale)).rounded())
        guard decimals > 0 else { return "\(rounded) \(units[unit])" }
        let (whole, rest) = rounded.quotientAndRemainder(dividingBy: scale)
        let fraction = String(rest)
        return "\(whole).\(String(repeating: "0", count: decimals - fraction.count))\(fraction) \(units[unit])"
    }
}

extension ByteSize {
    private static let units: [(name: String, bytes: Int64)] = [
        ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000), ("TiB", 1 << 40),
        ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
    ]

    /// The size in the largest unit that is exact: `20GB`, `1500kB`, `32MiB`, `4194305`.
    package static func exactText(_ bytes: Int64) -> String {
        // no trap: units of a table, none of them 0
        for unit in units where bytes > 0 && bytes % unit.bytes == 0 { return "\(bytes / unit.bytes)\(unit.name)" }
        return String(bytes)
    }
}
