import Foundation

/// The order of events in the sending of one body: pure, so that the connection only does what it says.
struct BodySchedule: Sendable {
    enum Step: Equatable {
        case send(Int)
        case stall
        case cut
        case end
    }

    /// Body bytes of the response.
    let length: Int64
    /// The connection is cut when so many are sent.
    let cutAfter: Int64?
    /// When so many are sent, the rest waits to be released.
    let stallAfter: Int64?
    let bytesPerSecond: Int64?

    private(set) var sent: Int64 = 0
    private var hasStalled = false

    init(length: Int64, cutAfter: Int64?, stallAfter: Int64?, bytesPerSecond: Int64?) {
        precondition(bytesPerSecond ?? 1 > 0, "a pace is positive")
        (self.length, self.cutAfter, self.stallAfter, self.bytesPerSecond) = (
            length, cutAfter, stallAfter, bytesPerSecond
        )
    }

    /// What comes next. Bytes returned as `send` count as sent.
    mutating func next() -> Step {
        if let stallAfter, !hasStalled, sent == stallAfter {
            hasStalled = true
            return .stall
        }
        if let cutAfter, sent == cutAfter { return .cut }
        if sent == length { return .end }
        let count = Swift.min(largestPiece, nextStop - sent)
        sent += count
        return .send(Int(count))
    }

    /// Whether nothing but the end is to come.
    var isOver: Bool {
        var ahead = self
        return ahead.next() == .end
    }

    /// How long after the body's begin the bytes sent so far are due to be followed by more.
    var due: Duration? { bytesPerSecond.map { .seconds(Double(sent) / Double($0)) } }

    /// A paced body goes in pieces of ten milliseconds.
    private var largestPiece: Int64 { Swift.max(1, Swift.min(64 * 1024, bytesPerSecond.map { $0 / 100 } ?? .max)) }

    private var nextStop: Int64 {
        let stops = [length, cutAfter, hasStalled ? nil : stallAfter]
        return stops.compactMap { $0 }.filter { $0 > sent }.min() ?? length
    }
}
