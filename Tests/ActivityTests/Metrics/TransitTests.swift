import Activity
import CachePolicy
import Testing

/// The budget of what waits in memory.
@Suite struct TransitTests {
    private let transit = ProxyMetrics.Transit()

    /// Holders that each take all that they may, until nothing is left but the least.
    private func fill(for client: (Int) -> IPAddress?) -> [ProxyMetrics.Transit.Share] {
        (0..<100).map { index in
            let share = transit.share(of: client(index))
            share.hold(share.window)
            return share
        }
    }

    @Test func whateverHoldersTakeIsWithinTheLimit() {
        var shares = fill { IPAddress("10.0.0.\($0)") }
        #expect(shares[99].window == ProxyMetrics.Transit.leastWindow)
        #expect(transit.bytes > transit.limit / 2 && transit.bytes <= transit.limit)
        shares.removeLast(50)
        let held = transit.bytes
        shares[0].hold(0)
        #expect(transit.bytes < held)
        shares = []
        #expect(transit.bytes == 0)
    }

    @Test func oneClientLeavesSomeForOthers() {
        let shares = fill { _ in IPAddress("10.0.0.1") }
        #expect(shares[99].window == ProxyMetrics.Transit.leastWindow)
        #expect(transit.share(of: IPAddress("10.0.0.2")).window > 8 * ProxyMetrics.Transit.leastWindow)
        #expect(transit.share(of: nil).window > 8 * ProxyMetrics.Transit.leastWindow)
    }

    /// Each who sends them counts them for as long as anybody does.
    @Test func bytesThatManySendCountOnce() {
        let shared = ProxyMetrics.Transit.SharedBytes()
        var holders = (0..<3).map { _ in shared.holder(else: transit.share(of: nil)) }
        holders[0].hold(1000)
        holders.removeFirst()
        #expect(transit.bytes == 1000 && holders[0] === holders[1])
        holders = []
        #expect(transit.bytes == 0)
        #expect(shared.holder(else: transit.share(of: nil)) !== transit.share(of: nil) && transit.bytes == 0)
    }

    @Test func smallerLimitShrinksWindows() {
        let share = transit.share(of: nil), former = share.window
        transit.setLimit(transit.limit / 4)
        #expect(share.window < former && share.window > ProxyMetrics.Transit.leastWindow)
        transit.setLimit(0)
        #expect(transit.limit == ProxyMetrics.Transit.leastLimit)
    }
}
