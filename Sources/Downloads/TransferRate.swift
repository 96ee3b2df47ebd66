import Foundation
import HTTPModel

/// The recent rate of a download: an average in which the last few seconds count most.
struct TransferRate: Sendable, Equatable {
    /// After this many seconds, a change shows by two thirds.
    private static let timeConstant = 5.0

    private var last: (bytes: Int64, time: Double)?
    private var average: Double?

    static func == (a: TransferRate, b: TransferRate) -> Bool {
        a.average == b.average && a.last?.bytes == b.last?.bytes && a.last?.time == b.last?.time
    }

    /// - Parameters:
    ///   - bytes: all present bytes.
    ///   - time: seconds of a monotonic clock.
    mutating func sample(_ bytes: Int64, at time: Double) {
        // Bytes present at first have not just arrived: they were cached before.
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

    /// nil while no bytes arrive.
    var bytesPerSecond: Int64? {
        guard let average, average >= 1, average < 1e15 else { return nil }
        return Int64(whole: average)
    }

    /// Seconds until this many bytes have arrived, rounded up; nil if unknown.
    static func seconds(for bytes: Int64?, at rate: Int64?) -> Int64? {
        guard let bytes, let rate, rate > 0 else { return nil }
        let (seconds, rest) = max(0, bytes).quotientAndRemainder(dividingBy: rate)
        return rest > 0 ? seconds +| 1 : seconds
    }
}
