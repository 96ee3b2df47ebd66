import CachePolicy
import TestSupport
import Testing

@Suite struct PresenceTests {
    @Test(
        arguments: [
            (0..<0, 0), (64..<64, 0), (0..<1, 1), (0..<64, .max), (63..<64, 1 << 63), (1..<4, 0b1110),
            (0..<63, UInt64.max >> 1),
            (5..<5, 0),
        ] as [(Range<Int>, UInt64)])
    func maskSetsItsBits(range: Range<Int>, bits: UInt64) {
        #expect(Presence.mask(range) == bits)
    }

    @Test func runsAtTheEdgesOfTheWord() {
        #expect(Presence(bits: .max).runOfPresent(from: 0) == 64)
        #expect(Presence(bits: .max).runOfPresent(from: 63) == 1)
        #expect(Presence(bits: .max).runOfPresent(from: 64) == 0)
        #expect(Presence().runOfAbsent(from: 0) == 64)
        #expect(Presence().runOfAbsent(from: 64) == 0)
        #expect(Presence(bits: .max).runs == [0..<64])
        #expect(Presence().runs == [])
        #expect(Presence(bits: 1 << 63 | 1).runs == [0..<1, 63..<64])
    }

    private struct Pair: Sendable {
        let (a, b): (UInt64, UInt64)
        let (union, intersection, difference): (UInt64, UInt64, UInt64)
    }

    @Test(
        arguments: [
            Pair(a: 0, b: 0, union: 0, intersection: 0, difference: 0),
            Pair(a: 0b0110, b: 0b0011, union: 0b0111, intersection: 0b0010, difference: 0b0100),
            Pair(a: .max, b: 1 << 63, union: .max, intersection: 1 << 63, difference: .max >> 1),
            Pair(a: 1, b: 1 << 63, union: 1 << 63 | 1, intersection: 0, difference: 1),
            Pair(a: 0, b: .max, union: .max, intersection: 0, difference: 0),
        ])
    private func chunksOfTwoSets(pair: Pair) {
        let (a, b) = (Presence(bits: pair.a), Presence(bits: pair.b))
        #expect(a.union(b).bits == pair.union)
        #expect(a.intersection(b).bits == pair.intersection)
        #expect(a.subtracting(b).bits == pair.difference)
        #expect(a.union(b).isSuperset(of: a) && a.isSuperset(of: a.intersection(b)))
        #expect(a.isSuperset(of: b) == (pair.union == pair.a))
        var (united, rest) = (a, a)
        united.formUnion(b)
        rest.subtract(b)
        #expect([united, a.intersection(b), rest].map(\.bits) == [pair.union, pair.intersection, pair.difference])
    }

    @Test(
        arguments: [
            (0, 0..<64, [0..<64]), (.max, 0..<64, []), (0b0110, 0..<4, [0..<1, 3..<4]), (0b0110, 1..<3, []),
            (0b0110, 2..<6, [3..<6]), (1 << 63, 60..<64, [60..<63]), (0, 5..<5, []),
        ] as [(UInt64, Range<Int>, [Range<Int>])])
    func gapsWithinARun(bits: UInt64, run: Range<Int>, gaps: [Range<Int>]) {
        let complement = Presence(bits: bits).complement(within: run)
        #expect(complement.runs == gaps && complement == Presence(gaps.joined()))
    }

    @Test func presenceBehavesAsAnArrayOfFlags() {
        var random = SplitMix64.forTest("presence")
        for _ in 0..<200 {
            var presence = Presence()
            var model = Array(repeating: false, count: 64)
            for _ in 0..<40 {
                step(&presence, &model, &random)
                expect(presence, equals: model)
            }
        }
    }

    private func step(_ presence: inout Presence, _ model: inout [Bool], _ random: inout SplitMix64) {
        let bit = Int.random(in: 0..<64, using: &random)
        let end = Int.random(in: bit...64, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            presence.insert(bit)
            model[bit] = true
        case 1:
            presence.remove(bit)
            model[bit] = false
        case 2:
            presence.insert(bit..<end)
            for index in bit..<end { model[index] = true }
        default:
            presence.remove(bit..<end)
            for index in bit..<end { model[index] = false }
        }
    }

    private func expect(_ presence: Presence, equals model: [Bool]) {
        #expect((0..<64).map(presence.contains) == model)
        #expect(presence.count == model.count { $0 })
        #expect(presence.isEmpty == !model.contains(true))
        #expect((0...64).map(presence.runOfPresent) == (0...64).map { model[$0...].prefix { $0 }.count })
        #expect((0...64).map(presence.runOfAbsent) == (0...64).map { model[$0...].prefix { !$0 }.count })
        #expect(presence.runs == runs(model))
    }

    private func runs(_ model: [Bool]) -> [Range<Int>] {
        let starts = (0..<64).filter { model[$0] && ($0 == 0 || !model[$0 - 1]) }
        let ends = (0..<64).filter { model[$0] && ($0 == 63 || !model[$0 + 1]) }
        return zip(starts, ends).map { $0..<$1 + 1 }
    }
}
