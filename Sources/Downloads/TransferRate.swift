import Foundation
import HTTPModel

/// How many bytes come per second of late: an average in which the last few seconds count most.
struct TransferRate: Sendable, Equatable {
    /// After so many seconds a change shows by two thirds.
    private static let timeConstant = 5.0

    private var last: (bytes: Int64, time: Double)?
    private var average: Double?

    static func == (a: TransferRate, b: TransferRate) -> Bool {
        a.average == b.average && a.last?.bytes == b.last?.bytes && a.last?.time == b.last?.time
    }

    /// - Parameters:
    ///   - bytes: all that are there.
    ///   - time: seconds of a clock that never goes back.
    mutating func sample(_ bytes: Int64, at time: Double) {
        // What is there first has not just come: it was cached before.
        guard let (before, then) = last else {
            if bytes > 0 { last = (bytes, time) }
            return
        }
        guard time > then else { return }
        let current = Double(max(0, bytes -| before)) / (time - then)
        let weight = 1 - exp(-(time - then) / Self.timeConstant)
        average = average.map { $0 + weight * (current - $0) } ?? current
        last = (bytes, time)
    }

    /// nil while none come.
    var bytesPerSecond: Int64? {
        guard let average, average >= 1, average < 1e15 else { return nil }
        return Int64(whole: average)
    }

    /// Seconds until so many bytes have come, rounded up; nil where that cannot be told.
    static func seconds(for bytes: Int64?, at rate: Int64?) -> Int64? {
        guard let bytes, let rate, rate > 0 else { return nil }
        let (seconds, rest) = max(0, bytes).quotientAndRemainder(dividingBy: rate)
        return rest > 0 ? seconds +| 1 : seconds
    }
}
