import HeapModule

/// A queue for each party. The parties take turns; within a party, first come, first served. Pure.
///
/// A party that has reached a bound stands aside, without losing its place, until there is room within that bound, and
/// then for no more of its kind than there is room for. So adding, removing and taking the next waiter cost the same
/// however many wait, on average: web pages can make thousands wait.
struct FairLine<Waiter> {
    typealias Party = TransferSlots.Party
    typealias Taken = TransferSlots.Taken

    private struct PartyLine {
        var waiters = NumberedLine<Waiter>()
        var turn: UInt64
        /// The bound for which it stands aside; nil if it is among those whose turn comes.
        var bound: Party.Bound?
    }

    private struct Turn: Comparable {
        let number: UInt64
        let party: Party

        static func < (left: Turn, right: Turn) -> Bool { left.number < right.number }
    }

    private var lines: [Party: PartyLine] = [:]
    /// By the bound that they have reached; under nil those whose turn comes. Turns of parties that are gone are
    /// skipped.
    private var turns: [Party.Bound?: Heap<Turn>] = [:]
    private var lastTurn: UInt64 = 0

    /// The number of waiters.
    private(set) var count = 0
    /// How many turns were looked at, ever: what its work is measured by.
    private(set) var steps = 0

    /// - Parameter number: greater than all numbers before.
    mutating func append(_ waiter: Waiter, _ number: UInt64, for party: Party, _ taken: Taken) {
        if lines[party] == nil { takeTurn(party, PartyLine(turn: 0), taken.full(for: party)) }
        lines[party]?.waiters.append(waiter, number)
        count += 1
    }

    /// Takes the first waiter of the first party that may have one more. The party moves to the end.
    mutating func next(_ taken: Taken) -> (party: Party, waiter: Waiter)? {
        while let party = removeFirst(nil) {
            if let full = taken.full(for: party) {
                stand(party, at: full)
                hasRoom(within: party.bounds, taken)
            } else if var line = lines.removeValue(forKey: party), let waiter = line.waiters.removeFirst() {
                count -= 1
                if !line.waiters.elements.isEmpty { takeTurn(party, line, nil) }
                return (party, waiter)
            }
        }
        return nil
    }

    /// There may be room within these bounds. For each, the first party that has waited for it takes its turn again,
    /// unless it has reached another one.
    mutating func hasRoom(within bounds: [Party.Bound], _ taken: Taken) {
        for bound in bounds where !taken.isFull(bound) {
            while let party = removeFirst(bound) {
                let other = taken.full(for: party)
                stand(party, at: other)
                if other == nil { break }
            }
        }
    }

    /// - Returns: whether it was waiting.
    @discardableResult
    mutating func remove(_ number: UInt64, for party: Party, _ taken: Taken) -> Bool {
        guard lines[party]?.waiters.remove(number) == true else { return false }
        count -= 1
        guard let line = lines[party], line.waiters.elements.isEmpty else { return true }
        lines[party] = nil
        // It may have been to use the room that there is.
        if line.bound == nil { hasRoom(within: party.bounds, taken) }
        if let turns = turns[line.bound], turns.count > 2 * lines.count + 16 {
            let lines = lines
            self.turns[line.bound]?.removeAll { lines[$0.party]?.turn != $0.number }
        }
        return true
    }

    private mutating func takeTurn(_ party: Party, _ line: PartyLine, _ bound: Party.Bound?) {
        lastTurn += 1 // no trap: one for each that waits, of 64 bits
        lines[party] = line
        lines[party]?.turn = lastTurn
        stand(party, at: bound)
    }

    private mutating func stand(_ party: Party, at bound: Party.Bound?) {
        guard let turn = lines[party]?.turn else { return }
        lines[party]?.bound = bound
        turns[bound, default: Heap()].insert(Turn(number: turn, party: party))
    }

    private mutating func removeFirst(_ bound: Party.Bound?) -> Party? {
        defer { if turns[bound]?.isEmpty == true { turns[bound] = nil } }
        while let turn = turns[bound]?.popMin() {
            steps += 1
            if lines[turn.party]?.turn == turn.number { return turn.party }
        }
        return nil
    }
}

/// Elements in the order of their numbers; any of them can be removed.
private struct NumberedLine<Element> {
    private(set) var elements: [UInt64: Element] = [:]
    /// Numbers in order from `head` on, those of removed elements included; the first one is always present.
    private var order: [UInt64] = []
    private var head = 0

    mutating func append(_ element: Element, _ number: UInt64) {
        elements[number] = element
        order.append(number)
    }

    mutating func removeFirst() -> Element? {
        guard head < order.count, let element = elements.removeValue(forKey: order[head]) else { return nil }
        tidy()
        return element
    }

    @discardableResult
    mutating func remove(_ number: UInt64) -> Bool {
        guard elements.removeValue(forKey: number) != nil else { return false }
        tidy()
        return true
    }

    /// Skips the numbers of removed elements, and drops them once they are the majority.
    private mutating func tidy() {
        while head < order.count, elements[order[head]] == nil { head += 1 }
        guard order.count > 2 * elements.count + 16 else { return }
        order = order[head...].filter { elements[$0] != nil }
        head = 0
    }
}
