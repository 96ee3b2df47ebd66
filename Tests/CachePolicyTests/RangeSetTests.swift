import CachePolicy
import HTTPModel
import TestSupport
import Testing

@Suite struct RangeSetTests {
    @Test(
        arguments: [
            // RFC 9110 §14.2: what is outside is left out; none left is 416.
            ([.bounded(first: 0, last: 9), .bounded(first: 5000, last: 5009)], .parts([0..<10, 5000..<5010])),
            ([.from(10_000), .suffix(5)], .parts([9995..<10_000])),
            ([.from(10_000), .suffix(0)], .unsatisfiable),
            ([.bounded(first: 10_000, last: .max), .from(.max)], .unsatisfiable), ([], .unsatisfiable),
            // §15.3.7.2: in the order in which they were asked for.
            (
                [.suffix(5), .bounded(first: 500, last: 509), .bounded(first: 0, last: 9)],
                .parts([9995..<10_000, 500..<510, 0..<10])
            ),
            // Those that overlap, touch, or are nearer to each other than a part's own bytes, become one, in the place of
            // the first.
            ([.bounded(first: 0, last: 9), .bounded(first: 5, last: 19)], .parts([0..<20])),
            ([.bounded(first: 10, last: 19), .bounded(first: 0, last: 9)], .parts([0..<20])),
            ([.bounded(first: 0, last: 9), .bounded(first: 109, last: 119)], .parts([0..<120])),
            ([.bounded(first: 0, last: 9), .bounded(first: 110, last: 119)], .parts([0..<10, 110..<120])),
            ([.bounded(first: 0, last: 9), .bounded(first: 0, last: 9)], .parts([0..<10])),
            ([.from(0), .bounded(first: 3, last: 4), .suffix(2)], .parts([0..<10_000])),
            (
                [
                    .suffix(5), .bounded(first: 3000, last: 3009), .bounded(first: 9000, last: 9009),
                    .bounded(first: 3005, last: 3300), .bounded(first: 9900, last: 9990),
                ],
                .parts([9900..<10_000, 3000..<3301, 9000..<9010])
            ),
            (
                [.bounded(first: 0, last: 9), .bounded(first: 5000, last: 5009), .bounded(first: 20, last: 4990)],
                .parts([0..<5010])
            ),
        ] as [([ByteRangeSpec], RangeSet)])
    func rangesBecomeParts(specs: [ByteRangeSpec], set: RangeSet) {
        #expect(RangeSet(specs, length: 10_000) == set)
    }

    @Test func offsetsGoToTheEndOfTheNumbers() {
        let specs: [ByteRangeSpec] = [.bounded(first: 0, last: 0), .from(.max - 1), .suffix(.max)]
        #expect(RangeSet(Array(specs.prefix(2)), length: .max) == .parts([0..<1, .max - 1..<Int64.max]))
        #expect(RangeSet(specs, length: .max) == .parts([0..<Int64.max]))
        #expect(RangeSet(specs, length: 0) == .unsatisfiable)
    }

    // RFC 9110 §17.15
    @Test func sillyListsAreIgnored() {
        let offsets = (0..<33).map { Int64($0) * 1000 }
        let apart = offsets.map { ByteRangeSpec.bounded(first: $0, last: $0) }
        let parts = offsets.prefix(32).map { $0..<$0 + 1 }
        #expect(RangeSet(Array(apart.prefix(32)), length: 100_000) == .parts(parts))
        #expect(RangeSet(apart, length: 100_000) == .whole)
        let overlapping = (0..<65).map { ByteRangeSpec.bounded(first: $0, last: $0 + 5000) }
        #expect(RangeSet(Array(overlapping.prefix(64)), length: 100_000) == .parts([0..<5064]))
        #expect(RangeSet(overlapping, length: 100_000) == .whole)
        // Also where none of them would be inside.
        #expect(RangeSet(Array(repeating: .from(1), count: 65), length: 1) == .whole)
    }

    @Test(
        arguments: [
            ([.bounded(first: 50, last: 60), .bounded(first: 0, last: 9)], .bounded(first: 0, last: 9)),
            ([.from(7), .bounded(first: 5, last: 6)], .bounded(first: 5, last: 6)),
            ([.from(0), .suffix(5)], .from(0)),
            ([.bounded(first: 1, last: 9), .suffix(5), .suffix(70), .suffix(6)], .suffix(70)),
            ([.suffix(5), .suffix(0)], .suffix(5)),
            ([.bounded(first: 1, last: 9), .suffix(0)], .bounded(first: 1, last: 9)), ([.suffix(0)], .suffix(0)),
            ([.from(3)], .from(3)), ([], nil),
        ] as [([ByteRangeSpec], ByteRangeSpec?)])
    func originIsAskedForOneThatIsInsideIfAnyIs(specs: [ByteRangeSpec], opening: ByteRangeSpec?) {
        #expect(RangeSet.opening(specs) == opening)
    }

    @Test func ofTooManyTheOriginIsAskedForTheWhole() {
        #expect(RangeSet.opening(Array(repeating: .from(0), count: 65)) == nil)
    }

    // MARK: Against a model

    @Test func partsHoldWhatWasAskedForAndLittleElse() {
        var random = SplitMix64.forTest("rangeSets")
        for _ in 0..<3000 {
            let length = Int64.random(in: 0...3000, using: &random)
            let specs = (0..<Int.random(in: 1...12, using: &random)).map { _ in Self.spec(&random) }
            let asked = specs.compactMap { $0.resolve(length: length) }
            let opening = RangeSet.opening(specs)?.resolve(length: length)
            #expect((opening == nil) == asked.isEmpty, "\(specs) of \(length)")
            guard case .parts(let parts) = RangeSet(specs, length: length) else {
                #expect(asked.isEmpty, "\(specs) of \(length)")
                continue
            }
            let sorted = parts.sorted { $0.lowerBound < $1.lowerBound }
            let isApart = zip(sorted, sorted.dropFirst()).allSatisfy {
                $1.lowerBound - $0.upperBound >= RangeSet.partOverhead
            }
            #expect(isApart, "\(specs) of \(length)")
            let isThere = asked.allSatisfy { range in
                parts.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
            }
            #expect(isThere, "\(specs) of \(length)")
            // Each byte of a part is asked for, or in a short gap.
            let bytes = Set(asked.flatMap { $0.lowerBound - RangeSet.partOverhead + 1..<$0.upperBound })
            let isNeeded = parts.allSatisfy { part in
                part.allSatisfy(bytes.contains) && asked.contains { $0.upperBound == part.upperBound }
            }
            #expect(isNeeded, "\(specs) of \(length)")
            let places = parts.map { part in asked.firstIndex { part.overlaps($0) } ?? -1 }
            #expect(places == places.sorted(), "\(specs) of \(length)")
        }
    }

    private static func spec(_ random: inout SplitMix64) -> ByteRangeSpec {
        let first = Int64.random(in: 0...3500, using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return .from(first)
        case 1: return .suffix(first / 10)
        default: return .bounded(first: first, last: first + Int64.random(in: 0...200, using: &random))
        }
    }
}
