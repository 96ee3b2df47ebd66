import HTTPModel

/// Which connection of a prefetch brings what, and how many there may be. Bound to the prefetch's loop, as its fills
/// are.
struct PrefetchShares {
    /// What one connection does.
    private struct Share {
        let fill: ResourceFill
        /// Where and when its block was begun: in bytes, and in nanoseconds of a clock that never goes back.
        var start: Int64
        var began: UInt64

        /// What it brings, in bytes per second, round trips included; nil before the first bytes.
        func rate(at now: UInt64) -> Double? {
            guard now > began, fill.position > start else { return nil }
            return Double(fill.position -| start) / (Double(now -| began) / 1e9)
        }
    }

    private var shares: [ObjectIdentifier: Share] = [:]
    private var plan: BlockPlan
    /// How many may be at it: fewer than were ordered where the origin has refused one, or nothing but one transfer
    /// brings it.
    private(set) var most: Int

    /// - Parameter most: connections at most.
    init(of stretch: Range<Int64>, for most: Int) {
        (plan, self.most) = (BlockPlan(of: stretch, for: most), most)
    }

    var count: Int { shares.count }

    var fills: [ResourceFill] { shares.values.map(\.fill) }

    /// Whether something is left to be handed out.
    var hasMore: Bool { !plan.isEmpty }

    /// The first block.
    /// - Parameter end: where the fetch ends that has opened the resource, if there is one, and it runs.
    mutating func first(upTo end: Int64?) -> Range<Int64>? { plan.next(upTo: most > 1 ? end : nil) }

    /// The next block, for a connection that is about to begin, or is done with its last.
    /// - Parameter now: nanoseconds.
    mutating func next(for fill: ResourceFill?, at now: UInt64) -> Range<Int64>? {
        let others = shares.values.filter { $0.fill !== fill }.map {
            BlockPlan.Running(id: ObjectIdentifier($0.fill), rest: $0.fill.rest, rate: $0.rate(at: now))
        }
        let left = others.reduce(Int64(0)) { $0 +| Int64($1.rest.count) }
        let rate = fill.flatMap { shares[ObjectIdentifier($0)]?.rate(at: now) }
        if let block = plan.next(rate: rate, beside: left) { return block }
        // Only who has brought something has shown that the origin serves it.
        guard fill != nil, let (id, place) = plan.split(others, rate: rate) else { return nil }
        return shares[id]?.fill.end(at: place)
    }

    /// A connection begins a block.
    /// - Parameter now: nanoseconds.
    mutating func begin(_ block: Range<Int64>, by fill: ResourceFill, at now: UInt64) {
        shares[ObjectIdentifier(fill)] = Share(fill: fill, start: block.lowerBound, began: now)
    }

    /// A connection has ended.
    /// - Returns: whether it was one of these.
    mutating func remove(_ fill: ResourceFill) -> Bool { shares.removeValue(forKey: ObjectIdentifier(fill)) != nil }

    /// Some origins serve a client so many connections at once, and no more: the others do what one has left.
    mutating func refuseOne(leaving rest: Range<Int64>) {
        plan.giveBack(rest)
        most = max(1, most - 1)
    }
}
