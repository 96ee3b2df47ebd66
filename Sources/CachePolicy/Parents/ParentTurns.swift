/// Which parent a fetch asks next: each in its order, those that have failed lately excepted, and then the origin. A
/// value, without clock.
///
///     first parent ── failed ──▶ second parent ── failed ──▶ origin ── failed ──▶ first parent, when it is tried again
package struct ParentTurns: Sendable, Equatable {
    private let parents: [ParentProxy]
    /// How many were asked in vain, or passed over, since the beginning of the round.
    private var turn = 0
    /// Whom the last request went to; nil for the origin.
    package private(set) var requested: ParentProxy?

    package init(_ parents: [ParentProxy], for key: CacheKey) { self.parents = parents.order(for: key) }

    /// The parent to ask; nil for the origin.
    /// - Parameter isResting: whether a parent failed so recently that it is not asked.
    package func next(isResting: (ParentProxy) -> Bool) -> ParentProxy? {
        parents.dropFirst(turn).first { !isResting($0) }
    }

    /// Records where a request goes.
    package mutating func use(_ parent: ParentProxy?) { requested = parent }

    /// The parent asked last has failed.
    package mutating func leave() {
        guard let place = requested.flatMap(parents.firstIndex) else { return }
        turn = place + 1 // no trap: an index
    }

    /// The origin has failed, too: a new round.
    package mutating func restart() { turn = 0 }
}
