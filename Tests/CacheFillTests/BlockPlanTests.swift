import Testing

@testable import CacheFill

@Suite struct BlockPlanTests {
    private static let mebi: Int64 = 1 << 20

    @Test func oneConnectionFetchesItAsOne() {
        var plan = BlockPlan(of: [5..<1 << 40], for: 1)
        #expect(plan.next() == 5..<1 << 40)
        #expect(plan.next() == nil && plan.isEmpty)
    }

    @Test func blocksComeInOrderAndAsLongAsTheirConnectionTakesSomeSecondsFor() {
        var plan = BlockPlan(of: [0..<1 << 34], for: 4)
        #expect(plan.next(upTo: 4 << 20) == 0..<4 << 20)
        #expect(plan.next() == 4 << 20..<20 << 20)
        #expect(plan.next(rate: 1e6) == 20 << 20..<24 << 20)
        #expect(plan.next(rate: 10) == 24 << 20..<25 << 20)
        #expect(plan.next(rate: 40 * 1_048_576) == 25 << 20..<225 << 20)
    }

    @Test func lastBlocksEndTogether() {
        var plan = BlockPlan(of: [0..<100 << 20], for: 4)
        #expect(plan.next(rate: 1e9, beside: 60 << 20) == 0..<40 << 20)
        #expect(plan.next(rate: 1e9, beside: 40 << 20) == 40 << 20..<65 << 20)
    }

    @Test func whatIsGivenBackGoesFirst() {
        var plan = BlockPlan(of: [0..<100], for: 2)
        #expect(plan.next() == 0..<100)
        plan.giveBack(40..<100)
        plan.giveBack(7..<7)
        #expect(!plan.isEmpty)
        #expect(plan.next() == 40..<100)
        #expect(plan.next() == nil)
    }

    @Test func halfOfTheSlowestIsTakenOver() throws {
        let plan = BlockPlan(of: [0..<0], for: 3)
        let quick = BlockPlan.Running(id: "quick", rest: 0..<100 << 20, rate: 100e6)
        let slow = BlockPlan.Running(id: "slow", rest: 200 << 20..<210 << 20, rate: 1e6)
        let silent = BlockPlan.Running(id: "silent", rest: 300 << 20..<308 << 20, rate: nil as Double?)
        #expect(plan.split([quick, slow])?.id == "slow")
        #expect(plan.split([quick, slow])?.at == 205 << 20)
        #expect(plan.split([quick, slow, silent])?.id == "silent")
        #expect(plan.split([quick])?.at == 50 << 20)
        #expect(plan.split([quick], rate: 300e6)?.at == 25 << 20)
        #expect(plan.split([quick, slow], rate: 100e6)?.at == 202 << 20)
        // It would be there before the other's first byte.
        #expect(plan.split([BlockPlan.Running(id: 1, rest: 0..<10 << 20, rate: 100e6)]) == nil)
        #expect(plan.split([BlockPlan.Running(id: 1, rest: 0..<2 << 20, rate: 1)]) == nil)
        #expect(plan.split([BlockPlan.Running<Int>]()) == nil)
    }

    @Test func numbersAtTheEdgeTrapNowhere() {
        for rate in [nil, 0, -1, .infinity, .greatestFiniteMagnitude] as [Double?] {
            for others in [Int64.min, -1, 0, .max] {
                var plan = BlockPlan(of: [0..<Int64.max], for: 16)
                while let block = plan.next(rate: rate, beside: others), block.upperBound < 1 << 30 {
                    #expect(!block.isEmpty)
                }
                for taker in [nil, 0, -1, .infinity, .nan, 1] as [Double?] {
                    _ = plan.split([BlockPlan.Running(id: 0, rest: 0..<Int64.max, rate: rate)], rate: taker)
                }
            }
        }
    }

    /// Connections of different speed, each with a round trip before each block, by the hundredth of a second.
    @Test(arguments: [
        [50e6, 50e6, 50e6, 50e6], [100e6, 10e6, 1e6], [2e6, 2e6, 2e6, 2e6, 2e6, 2e6, 2e6, 2e6],
        [5e6, 50e6, 50e6, 50e6],
    ])
    func allEndAtNearlyTheSameTime(rates: [Double]) {
        let (size, step, latency) = (Int64(1 << 30) / (rates.max()! < 10e6 ? 8 : 1), 0.01, 0.02)
        struct Connection { var block: Range<Int64>?; var done = 0.0; var wait = 0.0; var began = 0.0 }
        var plan = BlockPlan(of: [0..<size], for: rates.count)
        var connections = rates.map { _ in Connection(block: plan.next(), wait: latency) }
        var (time, requests, idle) = (0.0, rates.count, 0.0)
        while connections.contains(where: { $0.block != nil }) {
            time += step
            for index in connections.indices {
                guard let block = connections[index].block else {
                    idle += step
                    continue
                }
                connections[index].wait -= step
                if connections[index].wait >= 0 { continue }
                connections[index].done = min(connections[index].done + rates[index] * step, Double(block.count))
                guard connections[index].done >= Double(block.count) else { continue }
                let others = connections.indices.filter { $0 != index }.compactMap { other in
                    connections[other].block.map { block in
                        let done = connections[other].done
                        return BlockPlan.Running(
                            id: other, rest: block.lowerBound + Int64(done)..<block.upperBound,
                            rate: done > 0 ? done / (time - connections[other].began) : nil)
                    }
                }
                let left = others.reduce(Int64(0)) { $0 + Int64($1.rest.count) }
                var next = plan.next(rate: Double(block.count) / (time - connections[index].began), beside: left)
                if next == nil, let (id, place) = plan.split(others, rate: rates[index]) {
                    next = place..<connections[id].block!.upperBound
                    connections[id].block = connections[id].block!.lowerBound..<place
                }
                connections[index] = Connection(block: next, wait: latency, began: time)
                if next != nil { requests += 1 }
            }
        }
        let ideal = Double(size) / rates.reduce(0, +)
        // The slowest is left with 2 MiB, and what it takes to the start of the next.
        #expect(
            time <= ideal * 1.04 + 0.3 + 3 * Double(Self.mebi) / rates.min()!,
            "\(time) s, where \(ideal) s would do, with \(requests) requests")
        #expect(requests <= rates.count * 12)
    }
}
