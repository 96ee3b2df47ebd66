/// Writes metrics as text.
///
/// Sources: OpenMetrics 1.0 (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md) and
/// the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/).
package struct Exposition {
    private let format: ExpositionFormat
    private var text = ""

    /// All families, as the body of a response.
    package static func bytes(_ families: [MetricFamily], _ format: ExpositionFormat) -> [UInt8] {
        var exposition = Exposition(format: format)
        for family in families { exposition.add(family) }
        if format == .openMetrics { exposition.text += "# EOF\n" }
        return Array(exposition.text.utf8)
    }

    private init(format: ExpositionFormat) { self.format = format }

    private mutating func add(_ family: MetricFamily) {
        let sampleName = family.sampleName
        // OpenMetrics describes a family by its name, the older format by that of its samples.
        let name = format == .openMetrics ? family.name : sampleName
        text += "# HELP \(name) \(help(family.help))\n"
        text += "# TYPE \(name) \(type(family.kind))\n"
        if format == .openMetrics, let unit = family.unit { text += "# UNIT \(name) \(unit.rawValue)\n" }
        for sample in family.samples { add(sample, sampleName) }
    }

    private mutating func add(_ sample: MetricFamily.Sample, _ name: String) {
        switch sample.value {
        case .count(let count): line(name, sample.labels, String(count))
        case .level(let level): line(name, sample.labels, String(level))
        case .number(let number): line(name, sample.labels, Self.number(number))
        case .durations(let buckets):
            for (exponent, count) in zip(DurationBuckets.exponents, buckets.counts) {
                let bound = Self.seconds(nanoseconds: DurationBuckets.bound(exponent))
                line(name + "_bucket", sample.labels + [.init(name: "le", value: bound)], String(count))
            }
            line(name + "_bucket", sample.labels + [.init(name: "le", value: "+Inf")], String(buckets.count))
            line(name + "_sum", sample.labels, Self.seconds(nanoseconds: buckets.totalNanoseconds))
            line(name + "_count", sample.labels, String(buckets.count))
        }
    }

    private mutating func line(_ name: String, _ labels: [MetricFamily.Label], _ value: String) {
        text += name
        if !labels.isEmpty {
            text += "{" + labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",") + "}"
        }
        text += " \(value)\n"
    }

    private func type(_ kind: MetricFamily.Kind) -> String {
        switch kind {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        // The older format has no such type.
        case .info: format == .openMetrics ? "info" : "gauge"
        }
    }

    /// In the older format, a quotation mark of a description is not escaped.
    private func help(_ text: String) -> String {
        let escaped = Self.escaped(text)
        return format == .openMetrics ? escaped : escaped.replacing("\\\"", with: "\"")
    }

    private static func escaped(_ text: String) -> String {
        guard text.utf8.contains(where: { [UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "\n")].contains($0) })
        else { return text }
        return text.unicodeScalars.reduce(into: "") { escaped, scalar in
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
    }

    /// Without an exponent or a fraction where there is none.
    private static func number(_ number: Double) -> String {
        Int64(exactly: number).map { String($0) } ?? String(number)
    }

    /// Exactly, in decimals: `0.000065535`.
    static func seconds(nanoseconds: UInt64) -> String {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        var decimals = String(rest)
        decimals = String(repeating: "0", count: 9 - decimals.utf8.count) + decimals
        while decimals.last == "0" { decimals.removeLast() }
        return decimals.isEmpty ? String(seconds) : "\(seconds).\(decimals)"
    }
}

extension MetricFamily {
    /// The name of its samples; those of a histogram have further endings.
    package var sampleName: String {
        switch kind {
        case .counter: name + "_total"
        case .info: name + "_info"
        case .gauge, .histogram: name
        }
    }
}
