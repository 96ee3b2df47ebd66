import TestSupport
import Testing

@testable import Activity

/// Which hosts have a counter of their own name.
@Suite struct OriginCountersTests {
    private let counters = OriginCounters()

    private func received() -> [String: UInt64] {
        Dictionary(uniqueKeysWithValues: counters.listed.map { ($0.host, $0.bytes.received) })
    }

    @Test func firstHostsAreListedAndNothingIsOther() {
        counters.origin("b.example").received.add(5)
        counters.origin("a.example").sentFromCache.add(7)
        counters.origin("never.example").received.add(0)
        let listed = counters.listed
        #expect(listed.map(\.host) == ["a.example", "b.example", "other"])
        #expect(listed[0].bytes == OriginBytes(received: 0, sentFromCache: 7, sentFromOrigin: 0))
        #expect(listed[2].bytes == OriginBytes())
    }

    @Test func twentyWithMostBytesAreListedAndTheOthersSummed() {
        for number in 1...30 { counters.origin("host-\(number)").received.add(Int64(number)) }
        let received = received()
        #expect(received.count == 21)
        for number in 11...30 { #expect(received["host-\(number)"] == UInt64(number)) }
        #expect(received["other"] == 55)
    }

    @Test func hostThatLosesItsPlaceLeavesItsBytesToTheOthers() {
        for number in 1...20 { counters.origin("host-\(number)").received.add(Int64(number) * 10) }
        #expect(received()["host-1"] == 10)
        counters.origin("big").received.add(500)
        let later = received()
        #expect(later["host-1"] == nil && later["big"] == 500 && later["other"] == 10)
        // It returns: what it left stays where it is.
        counters.origin("host-1").received.add(1000)
        let last = received()
        #expect(last["host-1"] == 1000 && last["host-2"] == nil && last["other"] == 30)
    }

    @Test func hostsOfAsManyBytesKeepTheirPlaces() {
        for number in 1...20 { counters.origin("z-\(number)").received.add(10) }
        _ = counters.listed
        for number in 1...20 { counters.origin("a-\(number)").received.add(10) }
        #expect(received().keys.allSatisfy { $0 == "other" || $0.hasPrefix("z-") })
    }

    /// However the hosts change their places: a row that stays does not shrink, and all rows together are all bytes.
    @Test func rowsNeverShrinkAndAlwaysSumUp() {
        var random = SplitMix64.forTest("rowsNeverShrinkAndAlwaysSumUp")
        var (all, before) = (UInt64(0), [String: UInt64]())
        for _ in 0..<300 {
            for _ in 0..<UInt64.random(in: 0...5, using: &random) {
                let bytes = UInt64.random(in: 0...100, using: &random)
                counters.origin("host-\(UInt64.random(in: 0..<40, using: &random))").received.add(Int64(bytes))
                all += bytes
            }
            let rows = received()
            #expect(rows.count <= 21 && rows.values.reduce(0, +) == all)
            for (host, bytes) in rows { #expect(bytes >= before[host] ?? 0, "\(host)") }
            before = rows
        }
    }

    @Test func oddNamesAreBoundedAndCounted() {
        counters.origin("other").received.add(1)
        counters.origin("").received.add(2)
        let long = String(repeating: "ü", count: 300)
        counters.origin(long).received.add(3)
        let rows = received()
        #expect(rows["other"] == 1 && rows[""] == 2)
        #expect(rows.keys.allSatisfy { $0.utf8.count <= 258 })
        #expect(rows.values.reduce(0, +) == 6)
    }

    @Test func hostsBeyondTheCapacityAreSummed() {
        for number in 0..<OriginCounters.capacity + 10 { counters.origin("host-\(number)").received.add(1) }
        let rows = received()
        #expect(rows.count == 21 && rows["other"] == UInt64(OriginCounters.capacity + 10 - 20))
        #expect(counters.origin("host-5000") === counters.origin("host-6000"))
    }
}
