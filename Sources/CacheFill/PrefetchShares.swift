import HTTPModel

/// Divides a prefetch among its connections, and limits their number. Bound to the prefetch's loop, as its fills are.
struct PrefetchShares {
    /// One connection's share.
    struct Share {
        let fill: ResourceFill
        /// The offset at which its current block began, and when: nanoseconds of a monotonic clock.
        var start: Int64
        var began: UInt64

        /// Its rate in bytes per second, round trips included; nil before the first bytes.
        func rate(at now: UInt64) -> Double? {
            guard now > began, fill.position > start else { return nil }
            return Double(fill.position -| start) / (Double(now -| began) / 1e9)
        }
    }

    private(set) var running: [ObjectIdentifier: Share] = [:]
    private var plan: BlockPlan
    /// The most connections at once: reduced if the origin refuses one, or if only one transfer can deliver the
    /// resource.
    private(set) var most: Int

    /// - Parameters:
    ///   - stretches: in the order in which they should arrive.
    ///   - most: the most connections at once.
    init(of stretches: [Range<Int64>], for most: Int) {
        (plan, self.most) = (BlockPlan(of: stretches, for: most), most)
    }

    var fills: [ResourceFill] { running.values.map(\.fill) }

    /// Whether there are blocks left to hand out.
    var hasMore: Bool { !plan.isEmpty }

    /// The first block.
    /// - Parameter end: where the fetch that opened the resource ends, if it still runs.
    mutating func first(upTo end: Int64?) -> Range<Int64>? { plan.next(upTo: most > 1 ? end : nil) }

    /// The next block for a connection that is about to start, or has finished its last one.
    /// - Parameter now: nanoseconds.
    mutating func next(for fill: ResourceFill?, at now: UInt64) -> Range<Int64>? {
        let others = running.values.filter { $0.fill !== fill }.map {
            BlockPlan.Running(id: ObjectIdentifier($0.fill), rest: $0.fill.rest, rate: $0.rate(at: now))
        }
        let left = others.reduce(Int64(0)) { $0 +| Int64($1.rest.count) }
        let rate = fill.flatMap { running[ObjectIdentifier($0)]?.rate(at: now) }
        if let block = plan.next(rate: rate, beside: left) { return block }
        // Split only for a connection that has delivered something: it has shown that the origin serves it.
        guard fill != nil, let (id, place) = plan.split(others, rate: rate) else { return nil }
        return running[id]?.fill.end(at: place)
    }

    /// A connection starts a block.
    /// - Parameter now: nanoseconds.
    mutating func begin(_ block: Range<Int64>, by fill: ResourceFill, at now: UInt64) {
        running[ObjectIdentifier(fill)] = Share(fill: fill, start: block.lowerBound, began: now)
    }

    /// A connection has ended.
    /// - Returns: whether it belonged to this prefetch.
    mutating func remove(_ fill: ResourceFill) -> Bool { running.removeValue(forKey: ObjectIdentifier(fill)) != nil }

    /// Some origins limit the connections of one client. The others take over the rest of the refused one.
    mutating func refuseOne(leaving rest: Range<Int64>) {
        plan.giveBack(rest)
        most = max(1, most - 1)
    }
}
