/// A queue for each key. The keys take turns; within a key, first come, first served. Pure.
///
/// Adding, removing and taking the next waiter cost the same however many wait: web pages can make thousands wait.
struct FairLine<Key: Hashable, Waiter> {
    private struct KeyLine {
        var waiters = NumberedLine<Waiter>()
        /// The key's number among the turns.
        var turn: UInt64
    }

    private var lines: [Key: KeyLine] = [:]
    private var turns = NumberedLine<Key>()
    private var lastTurn: UInt64 = 0

    /// The number of waiters.
    private(set) var count = 0

    /// - Parameter number: greater than all numbers before.
    mutating func append(_ waiter: Waiter, _ number: UInt64, for key: Key) {
        if lines[key] == nil { lines[key] = KeyLine(turn: newTurn(key)) }
        lines[key]?.waiters.append(waiter, number)
        count += 1
    }

    /// Takes the first waiter of the first key that may have one more. The key moves to the end.
    mutating func next(where mayHave: (Key) -> Bool) -> (key: Key, waiter: Waiter)? {
        guard let key = turns.first(where: mayHave), let turn = lines[key]?.turn,
            let waiter = lines[key]?.waiters.removeFirst()
        else { return nil }
        count -= 1
        turns.remove(turn)
        if lines[key]?.waiters.isEmpty == true {
            lines[key] = nil
        } else {
            let next = newTurn(key)
            lines[key]?.turn = next
        }
        return (key, waiter)
    }

    /// - Returns: whether it was waiting.
    @discardableResult
    mutating func remove(_ number: UInt64, for key: Key) -> Bool {
        guard let turn = lines[key]?.turn, lines[key]?.waiters.remove(number) == true else { return false }
        count -= 1
        if lines[key]?.waiters.isEmpty == true {
            lines[key] = nil
            turns.remove(turn)
        }
        return true
    }

    private mutating func newTurn(_ key: Key) -> UInt64 {
        lastTurn += 1 // no trap: one for each that waits, of 64 bits
        turns.append(key, lastTurn)
        return lastTurn
    }
}

/// Elements in the order of their numbers; any of them can be removed.
private struct NumberedLine<Element> {
    private var elements: [UInt64: Element] = [:]
    /// Numbers in order from `head` on, those of removed elements included; the first one is always present.
    private var order: [UInt64] = []
    private var head = 0

    var isEmpty: Bool { elements.isEmpty }

    mutating func append(_ element: Element, _ number: UInt64) {
        elements[number] = element
        order.append(number)
    }

    func first(where matches: (Element) -> Bool) -> Element? {
        for number in order[head...] {
            if let element = elements[number], matches(element) { return element }
        }
        return nil
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
