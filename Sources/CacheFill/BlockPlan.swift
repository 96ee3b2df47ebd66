/// Divides stretches of a resource among several connections, one stretch after the other.
///
///     handed out             running            rest, in order
///     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓|▓▓▓▓░░░|▓▓░░░░░░|············
///                            first    second
///
/// A *block* is the range that one connection fetches with one request. Each request costs a round trip without data,
/// so a block lasts its connection a few seconds, which makes the round trip negligible. It is no longer than that
/// because the first bytes are played first. The last blocks are sized so that all connections end at the same time; a
/// connection that ends early takes over part of the slowest connection's block (`split`).
struct BlockPlan {
    /// A connection and its block.
    struct Running<ID> {
        let id: ID
        /// The part of its block that has not arrived.
        let rest: Range<Int64>
        /// Bytes per second; nil until it can be measured.
        let rate: Double?
    }

    /// What has not been handed out, in the order in which it should arrive.
    private var rest: [Range<Int64>]
    /// Blocks that connections left unfinished.
    private var returned: [Range<Int64>] = []
    private let connections: Int

    /// The smallest block in bytes: less is not worth a round trip.
    static let smallest: Int64 = 1 << 20
    /// The block of a connection whose rate is unknown, in bytes.
    static let first: Int64 = 16 << 20
    /// How long a block should take.
    static let seconds = 5.0
    /// Seconds; a block with less time left than this is not split.
    static let shortestHalved = 0.2

    /// - Parameters:
    ///   - stretches: in the order in which they should arrive.
    ///   - connections: how many share them; a single one gets each stretch as one block.
    init(of stretches: [Range<Int64>], for connections: Int) {
        (rest, self.connections) = (stretches.filter { !$0.isEmpty }, max(1, connections))
    }

    /// Returns an unfinished block, for another connection.
    mutating func giveBack(_ block: Range<Int64>) {
        if !block.isEmpty { returned.append(block) }
    }

    var isEmpty: Bool { returned.isEmpty && rest.isEmpty }

    /// The next block for a connection without one.
    /// - Parameters:
    ///   - end: where the block must end, if that is fixed.
    ///   - rate: the connection's rate in bytes per second; nil if unknown.
    ///   - others: bytes that the other connections' blocks still lack.
    mutating func next(upTo end: Int64? = nil, rate: Double? = nil, beside others: Int64 = 0) -> Range<Int64>? {
        if let block = returned.popLast() { return block }
        guard let stretch = rest.first else { return nil }
        let count = end.map { max(1, $0 - stretch.lowerBound) } ?? size(of: stretch, rate: rate, others: others)
        let block =
            stretch.lowerBound..<(Int64(stretch.count) > count ? stretch.lowerBound + count : stretch.upperBound)
        if block.upperBound < stretch.upperBound {
            rest[0] = block.upperBound..<stretch.upperBound
        } else {
            rest.removeFirst()
        }
        return block
    }

    private func size(of stretch: Range<Int64>, rate: Double?, others: Int64) -> Int64 {
        guard connections > 1 else { return .max }
        let share = (Int64(stretch.count) / Int64(connections)).addingReportingOverflow(
            max(0, others) / Int64(connections)
        ).partialValue
        let wanted = rate.map { Int64(min(max(0, $0) * Self.seconds, 1e18)) } ?? Self.first
        // One block of up to twice the length is better than a short one after it.
        let count = share <= 2 * wanted ? share : wanted
        return max(Self.smallest, count / Self.smallest * Self.smallest)
    }

    /// Where an idle connection takes over from another: the offset from which the other's block becomes its own. It is
    /// chosen so that both end at about the same time.
    /// - Parameter rate: the idle connection's rate in bytes per second; nil if unknown.
    func split<ID>(_ running: [Running<ID>], rate: Double? = nil) -> (id: ID, at: Int64)? {
        let slowest = running.max { Self.seconds(of: $0) < Self.seconds(of: $1) }
        guard let slowest, Self.seconds(of: slowest) >= Self.shortestHalved,
            slowest.rest.count >= Self.leastLeft + Self.smallest
        else { return nil }
        var share = 0.5
        if let rate, rate > 0, rate.isFinite, let other = slowest.rate, other.isFinite {
            share = max(0, other) / (max(0, other) + rate)
        }
        let left = Int64(min(Double(slowest.rest.count) * share, 1e18))
        let place = slowest.rest.lowerBound + max(Self.leastLeft, min(left, Int64(slowest.rest.count) - Self.smallest))
        // Round up to a multiple of `smallest`, which is a chunk boundary.
        return (slowest.id, (place + Self.smallest - 1) / Self.smallest * Self.smallest)
    }

    /// Bytes left to the slower connection. A fetch that starts any closer to a running transfer would join it instead.
    private static let leastLeft = FetchState.joinDistance + smallest

    /// Without a rate, assume the worst: a connection that has delivered nothing counts as the slowest.
    private static func seconds<ID>(of running: Running<ID>) -> Double {
        Double(running.rest.count) / max(1, running.rate ?? 1)
    }
}
