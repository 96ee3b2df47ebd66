import CachePolicy
import TestSupport
import Testing
@testable import Upstream

/// Whose turn it is, and what it costs to find that out.
@Suite struct FairLineTests {
    private typealias Party = TransferSlots.Party

    private func party(_ host: Int, _ client: Int) -> Party { Party(host: "\(host)", client: address(client)) }
    private func address(_ client: Int) -> IPAddress? { IPAddress("10.0.\(client / 250).\(client % 250 + 1)") }

    /// A client with all that it may have waits for thousands of hosts, or thousands of clients for a host that has
    /// all: others come and go without a look at each of them, and so does each that waits.
    @Test(arguments: [true, false]) func whoMayHaveNoMoreIsNotLookedAt(isOneClient: Bool) {
        var taken = TransferSlots.Taken(.init(total: 256, perHost: 64)), line = FairLine<Int>()
        for number in 0..<(isOneClient ? 192 : 64) {
            taken.count(isOneClient ? party(number, 0) : party(0, number), by: 1)
        }
        for number in 1...3000 {
            line.append(number, UInt64(number), for: isOneClient ? party(number, 0) : party(0, number), taken)
        }
        for _ in 1...20 {
            line.hasRoom(within: party(9999, 9999).bounds, taken)
            let next = line.next(taken)
            #expect(next == nil)
        }
        for number in 0..<20 {
            let former = isOneClient ? party(number, 0) : party(0, number)
            taken.count(former, by: -1)
            line.hasRoom(within: former.bounds, taken)
            let next = line.next(taken)
            if let next { taken.count(next.party, by: 1) }
            let another = line.next(taken)
            #expect(next?.waiter == number + 1 && another == nil)
        }
        #expect(line.steps < 200)
    }

    /// It was to have the room that a host has, and has meanwhile all that it may have: the room is for the next.
    @Test func roomIsForTheNextIfTheFirstMayHaveNoMore() {
        var taken = TransferSlots.Taken(.init(total: 4, perHost: 2)), line = FairLine<String>()
        for one in [party(0, 8), party(0, 9)] { taken.count(one, by: 1) }
        line.append("first", 1, for: party(0, 1), taken)
        line.append("next", 2, for: party(0, 2), taken)
        taken.count(party(0, 8), by: -1)
        line.hasRoom(within: party(0, 8).bounds, taken)
        for host in 1...3 { taken.count(party(host, 1), by: 1) }
        let next = line.next(taken)
        #expect(next?.waiter == "next")
    }

    /// Whoever stands aside keeps its place: the next is the first that may have one more, as if all were looked at.
    @Test func nextIsTheFirstThatMayHaveOneMore() {
        var random = SplitMix64.forTest("nextIsTheFirstThatMayHaveOneMore")
        for _ in 0..<300 {
            let limits = TransferSlots.Limits(
                total: .random(in: 1...12, using: &random), perHost: .random(in: 1...5, using: &random))
            var taken = TransferSlots.Taken(limits), line = FairLine<Int>()
            var all: [(party: Party, numbers: [Int])] = [], running: [Party] = []
            for number in 1...200 {
                let one = party(.random(in: 0..<5, using: &random), .random(in: 0..<4, using: &random))
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<5:
                    line.append(number, UInt64(number), for: one, taken)
                    if let index = all.firstIndex(where: { $0.party == one }) {
                        all[index].numbers.append(number)
                    } else {
                        all.append((one, [number]))
                    }
                case 5:
                    // Without a look at the line, as one that was paused.
                    taken.count(one, by: 1)
                    running.append(one)
                case 6:
                    guard let index = all.indices.randomElement(using: &random) else { continue }
                    let left = all[index].numbers.remove(at: .random(in: 0..<all[index].numbers.count, using: &random))
                    let waited = line.remove(UInt64(left), for: all[index].party, taken)
                    #expect(waited)
                    if all[index].numbers.isEmpty { all.remove(at: index) }
                default:
                    guard let index = running.indices.randomElement(using: &random) else { continue }
                    let former = running.remove(at: index)
                    taken.count(former, by: -1)
                    line.hasRoom(within: former.bounds, taken)
                }
                while taken.all < limits.total {
                    let first = all.firstIndex { taken.leaves($0.party) }, next = line.next(taken)
                    #expect(next?.waiter == first.map { all[$0].numbers[0] })
                    guard let first, let next else { break }
                    var moved = all.remove(at: first)
                    moved.numbers.removeFirst()
                    if !moved.numbers.isEmpty { all.append(moved) }
                    taken.count(next.party, by: 1)
                    running.append(next.party)
                }
                #expect(line.count == all.reduce(0) { $0 + $1.numbers.count })
            }
        }
    }
}
