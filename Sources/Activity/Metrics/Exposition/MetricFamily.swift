/// A metric with all its samples, as Prometheus understands the word.
package struct MetricFamily: Sendable, Equatable {
    package enum Kind: Sendable {
        /// Grows, and begins at zero when the process starts. Its samples end with `_total`.
        case counter
        /// Goes up and down.
        case gauge
        /// A sample of 1, whose labels are the information.
        case info
        /// Counts of durations up to some bounds.
        case histogram
    }

    /// The unit of its values, with which its name ends.
    package enum Unit: String, Sendable {
        case bytes, seconds
    }

    package enum Value: Sendable, Equatable {
        case count(UInt64)
        case level(Int64)
        case number(Double)
        case durations(DurationBuckets)
    }

    package struct Label: Sendable, Equatable {
        let name: String
        let value: String
    }

    package struct Sample: Sendable, Equatable {
        let labels: [Label]
        let value: Value
    }

    /// The name without the ending of its kind, such as `_total`.
    package let name: String
    package let kind: Kind
    package let unit: Unit?
    /// One sentence.
    package let help: String
    package internal(set) var samples: [Sample]
}

extension MetricFamily {
    /// A metric with one sample.
    static func one(_ kind: Kind, _ name: String, in unit: Unit? = nil, _ value: Value, _ help: String) -> Self {
        MetricFamily(name: name, kind: kind, unit: unit, help: help, samples: [Sample(labels: [], value: value)])
    }

    /// A metric with a sample for each value of one label.
    static func each(
        _ kind: Kind, _ name: String, in unit: Unit? = nil, by label: String, _ values: [(String, Value)],
        _ help: String
    ) -> Self {
        MetricFamily(
            name: name, kind: kind, unit: unit, help: help,
            samples: values.map { Sample(labels: [Label(name: label, value: $0)], value: $1) })
    }
}

/// Durations counted by upper bounds, each count including those before it.
///
/// The bounds are powers of two of nanoseconds, from 33 µs to 34 s: a hit answers within tens of microseconds to a few
/// milliseconds, a miss within milliseconds to seconds. `LatencyCounts` has these bounds too, so the counts are exact.
package struct DurationBuckets: Sendable, Equatable {
    static let exponents = 15...35

    /// One count for each exponent: durations of less than 2^exponent nanoseconds.
    let counts: [UInt64]
    /// The number of all durations, and their sum.
    let count: UInt64
    let totalNanoseconds: UInt64

    package init(_ counts: LatencyCounts) {
        self.counts = Self.exponents.map { counts.count(belowPowerOfTwo: $0) }
        (count, totalNanoseconds) = (counts.count, counts.totalNanoseconds)
    }

    /// The upper bound of a bucket, in nanoseconds, included.
    static func bound(_ exponent: Int) -> UInt64 { 1 << UInt64(exponent) - 1 }
}
