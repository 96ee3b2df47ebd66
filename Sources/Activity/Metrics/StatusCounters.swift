/// Responses by their status code (RFC 9110 §15). Safe to use from any thread; counting takes no lock.
package final class StatusCounters: Sendable {
    /// Those that are listed even while their count is 0, so that a rule about their increase sees the first one.
    private static let listed: Set = [200, 206, 304, 404, 500, 502, 503, 504]
    private static let codes = 100..<600
    private static let others = "other"

    private let counters = StatusCounters.codes.map { _ in Counter() }
    /// Those whose code is no status.
    private let rest = Counter()

    package init() {}

    package func add(_ code: Int) {
        let counter = Self.codes ~= code ? counters[code - Self.codes.lowerBound] : rest // no trap: compared before
        counter.add()
    }

    /// Those of 500 and more.
    package var failures: UInt64 {
        counters[(500 - Self.codes.lowerBound)...].reduce(0) { $0 &+ $1.value } // no trap: constants
    }

    /// The count of each code that occurred or is always listed, in order.
    package var values: [(code: String, count: UInt64)] {
        let counted = zip(Self.codes, counters).map { ($0, $1.value) }.filter { $1 > 0 || Self.listed.contains($0) }
        return counted.map { ("\($0)", $1) } + (rest.value > 0 ? [(Self.others, rest.value)] : [])
    }
}
