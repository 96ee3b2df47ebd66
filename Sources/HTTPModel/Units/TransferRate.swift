import Foundation

/// The recent rate of a transfer: an average in which the last few seconds count most.
package struct TransferRate: Sendable, Equatable {
    /// The first interval sets the average by itself: in a shorter one a single burst would be taken for the rate.
    private static let shortestFirst = 0.4

    private let timeConstant: Double
    private var last: (bytes: Int64, time: Double)?
    private var average: Double?

    /// - Parameter timeConstant: after this many seconds, a change shows by two thirds.
    package init(timeConstant: Double = 5) { self.timeConstant = timeConstant }

    package static func == (a: TransferRate, b: TransferRate) -> Bool {
        a.average == b.average && a.last?.bytes == b.last?.bytes && a.last?.time == b.last?.time
    }

    /// - Parameters:
    ///   - bytes: all present bytes.
    ///   - time: seconds of a monotonic clock.
    package mutating func sample(_ bytes: Int64, at time: Double) {
        // Bytes present at first have not just arrived: they were cached before.
        guard let (before, then) = last else {
            if bytes > 0 { last = (bytes, time) }
            return
        }
        guard time - then >= (average == nil ? Self.shortestFirst : .leastNonzeroMagnitude) else { return }
        let current = Double(max(0, bytes -| before)) / (time - then)
        let weight = 1 - exp(-(time - then) / timeConstant)
        average = average.map { $0 + weight * (current - $0) } ?? current
        last = (bytes, time)
    }

    /// nil while no bytes arrive.
    package var bytesPerSecond: Int64? {
        guard let average, average >= 1, average < 1e15 else { return nil }
        return Int64(whole: average)
    }

    /// Seconds until this many bytes have arrived, rounded up; nil if unknown.
    package static func seconds(for bytes: Int64?, at rate: Int64?) -> Int64? {
        guard let bytes, let rate, rate > 0 else { return nil }
        let (seconds, rest) = max(0, bytes).quotientAndRemainder(dividingBy: rate)
        return rest > 0 ? seconds +| 1 : seconds
    }
}
