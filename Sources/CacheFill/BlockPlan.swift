/// Which connection fetches what, where several fetch one stretch of a resource.
///
///     handed out             running            rest, in order
///     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓|▓▓▓▓░░░|▓▓░░░░░░|············
///                            first    second
///
/// A *block* is what one connection fetches with one request. Each request costs a round trip in which its connection
/// brings nothing: a block is as long as its connection takes some seconds for, so that this is next to nothing, and no
/// longer, as what comes first is played first. The last blocks are such that all connections end at the same time;
/// where one is done all the same, it takes over half of what the slowest has yet to bring (`split`).
struct BlockPlan {
    /// A connection with its block.
    struct Running<ID> {
        let id: ID
        /// What it has yet to bring.
        let rest: Range<Int64>
        /// Bytes per second; nil while that cannot be told.
        let rate: Double?
    }

    private var rest: Range<Int64>
    /// Blocks that others have left unfinished.
    private var returned: [Range<Int64>] = []
    private let connections: Int

    /// Requests of less than this are not worth their round trip, in bytes.
    static let smallest: Int64 = 1 << 20
    /// For a connection of which nothing is known, in bytes.
    static let first: Int64 = 16 << 20
    /// A block takes about so long.
    static let seconds = 5.0
    /// What is brought within so many seconds is not taken over.
    static let shortestHalved = 0.2

    /// - Parameter connections: how many share it; one fetches it as one block.
    init(of stretch: Range<Int64>, for connections: Int) { (rest, self.connections) = (stretch, max(1, connections)) }

    /// Somebody else has to do it.
    mutating func giveBack(_ block: Range<Int64>) {
        if !block.isEmpty { returned.append(block) }
    }

    var isEmpty: Bool { returned.isEmpty && rest.isEmpty }

    /// The next block, for a connection that has none.
    /// - Parameters:
    ///   - end: where it is to end, if that is known already.
    ///   - rate: what the connection brings, in bytes per second; nil where that is not known.
    ///   - others: what the others have yet to bring, in bytes.
    mutating func next(upTo end: Int64? = nil, rate: Double? = nil, beside others: Int64 = 0) -> Range<Int64>? {
        if let block = returned.popLast() { return block }
        guard !rest.isEmpty else { return nil }
        let count = end.map { max(1, $0 - rest.lowerBound) } ?? size(rate: rate, others: others)
        let block = rest.lowerBound..<(Int64(rest.count) > count ? rest.lowerBound + count : rest.upperBound)
        rest = block.upperBound..<rest.upperBound
        return block
    }

    private func size(rate: Double?, others: Int64) -> Int64 {
        guard connections > 1 else { return .max }
        let share = (Int64(rest.count) / Int64(connections)).addingReportingOverflow(
            max(0, others) / Int64(connections)
        ).partialValue
        let wanted = rate.map { Int64(min(max(0, $0) * Self.seconds, 1e18)) } ?? Self.first
        // Better one of up to twice the length than a short one after it.
        let count = share <= 2 * wanted ? share : wanted
        return max(Self.smallest, count / Self.smallest * Self.smallest)
    }

    /// Where a connection without a block takes over from another: from so far on, the other one's is its. Both end at
    /// about the same time then.
    /// - Parameter rate: what the one without a block brings, in bytes per second; nil where that is not known.
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
        // At a chunk's start.
        return (slowest.id, (place + Self.smallest - 1) / Self.smallest * Self.smallest)
    }

    /// What is nearer than this to where a transfer is would be waited for, and not asked for once more.
    private static let leastLeft = FetchState.joinDistance + smallest

    /// One that has brought nothing yet may be about to: it takes longest all the same.
    private static func seconds<ID>(of running: Running<ID>) -> Double {
        Double(running.rest.count) / max(1, running.rate ?? 1)
    }
}
