import Activity
import TestSupport
import Testing

@Suite struct CounterTests {
    @Test func counterSumsWhatThreadsAdd() throws {
        let counter = Counter()
        _ = try concurrently(8) { thread in
            for _ in 0..<20_000 { counter.add(Int64(thread)) }
        }
        #expect(counter.value == 20_000 * (0..<8).reduce(0, +))
    }

    @Test func gaugeReturnsToWhereItWas() throws {
        let gauge = Gauge()
        gauge.set(5)
        _ = try concurrently(8) { _ in
            for _ in 0..<20_000 {
                gauge.add(3)
                gauge.add(-3)
            }
        }
        #expect(gauge.value == 5)
    }

    @Test func labelledCountersCountEachLabel() throws {
        let counters = LabelledCounters()
        #expect(counters.values.isEmpty)
        _ = try concurrently(8) { thread in
            for _ in 0..<500 { counters.add("label-\(thread % 2)") }
        }
        #expect(counters.values == ["label-0": 2000, "label-1": 2000])
    }

    @Test func eachReasonHasACounterOfItsOwn() {
        let reasons = ReasonCounters()
        for (index, reason) in FetchReason.allCases.enumerated() { reasons[reason].add(Int64(index + 1)) }
        #expect(FetchReason.allCases.map { reasons[$0].value } == (1...FetchReason.allCases.count).map(UInt64.init))
    }
}
