import CachePolicy
import Testing

@testable import HTTPTransport

/// A ledger that expectations can change.
private final class Book {
    private var ledger = ClientLedger()

    var count: Int { ledger.entries.count }

    func enter(_ client: IPAddress, atMost limit: Int, now: UInt64) -> Bool {
        ledger.enter(client, atMost: limit, now: now)
    }

    func leave(_ client: IPAddress, now: UInt64) { ledger.leave(client, now: now) }

    func request(of client: IPAddress, atMost rate: RequestRate, now: UInt64) -> UInt64? {
        ledger.request(of: client, atMost: rate, now: now)
    }
}

@Suite struct ClientLedgerTests {
    private let second: UInt64 = 1_000_000_000
    private let one = IPAddress(v4: 1), other = IPAddress(v4: 2)

    @Test func eachClientHasItsOwnConnections() {
        let ledger = Book()
        for _ in 0..<2 { #expect(ledger.enter(one, atMost: 2, now: 0)) }
        #expect(!ledger.enter(one, atMost: 2, now: 0) && ledger.enter(other, atMost: 2, now: 0))
        ledger.leave(one, now: 0)
        #expect(ledger.enter(one, atMost: 2, now: 0))
    }

    @Test func asManyRequestsAsTheRateNamesComeAtOnce() throws {
        let ledger = Book()
        let rate = try RequestRate("3/s"), now = 5 * second
        for _ in 0..<3 { #expect(ledger.request(of: one, atMost: rate, now: now) == nil) }
        let wait: UInt64 = try #require(ledger.request(of: one, atMost: rate, now: now))
        #expect(wait == rate.interval && ledger.request(of: other, atMost: rate, now: now) == nil)
        #expect(ledger.request(of: one, atMost: rate, now: now + wait - 1) == 1)
        #expect(ledger.request(of: one, atMost: rate, now: now + wait) == nil)
        // After a whole period of silence, all again.
        for _ in 0..<3 { #expect(ledger.request(of: one, atMost: rate, now: now + 3 * second) == nil) }
        #expect(ledger.request(of: one, atMost: rate, now: now + 3 * second) != nil)
    }

    @Test func fasterRateCountsAtOnce() throws {
        let ledger = Book()
        let slow = try RequestRate("1/h"), fast = try RequestRate("3/s")
        #expect(ledger.request(of: one, atMost: slow, now: second) == nil)
        #expect(ledger.request(of: one, atMost: slow, now: second) != nil)
        let wait = ledger.request(of: one, atMost: fast, now: second)
        #expect(wait ?? 0 <= fast.interval)
        #expect(ledger.request(of: one, atMost: fast, now: second + fast.interval) == nil)
    }

    @Test func clientsThatHaveGoneAreForgotten() throws {
        let ledger = Book()
        let rate = try RequestRate("1/h")
        #expect(ledger.enter(one, atMost: 1, now: 0))
        ledger.leave(one, now: 1)
        #expect(ledger.count == 0)
        // Each has sent a request that still counts: only the oldest use of memory is bounded, not the others' rights.
        #expect(ledger.enter(one, atMost: 1, now: 0))
        for number in 0..<UInt32(3 * ClientLedger.mostIdle) {
            #expect(ledger.request(of: IPAddress(v4: 1000 + number), atMost: rate, now: UInt64(number)) == nil)
        }
        #expect(ledger.count <= 2 * ClientLedger.mostIdle + 1)
        #expect(!ledger.enter(one, atMost: 1, now: 0), "a client with a connection was forgotten")
        // And hours later, all of them.
        let late = 10_000 * second, fast = try RequestRate("1000000/s")
        for number in 0..<UInt32(2 * ClientLedger.mostIdle) {
            _ = ledger.request(of: IPAddress(v4: number), atMost: fast, now: late + UInt64(number) * 1000)
        }
        #expect(ledger.count < 10_000)
    }

    /// No number makes it trap.
    @Test func timesAtTheEdgeAreSafe() throws {
        let ledger = Book()
        for now: UInt64 in [0, 1, .max - 1, .max] {
            for rate in ["1/h", "1000000/s"] { _ = ledger.request(of: one, atMost: try RequestRate(rate), now: now) }
            ledger.leave(one, now: now)
        }
    }
}

@Suite struct DrainProgressTests {
    @Test(
        arguments: [
            // running, the last end, now, whether it waits on
            (1, 0, 150, true), (0, 0, 101, true), (0, 0, 120, false), (0, 115, 120, true), (0, 115, 135, false),
            (1, 0, 200, false), (0, 190, 199, true), (0, 199, 200, false),
        ] as [(Int, UInt64, UInt64, Bool)])
    func itWaitsForAnswersAndForQuiet(running: Int, lastEnd: UInt64, now: UInt64, continues: Bool) {
        let progress = DrainProgress(began: 100, end: 200, quiet: 20)
        #expect(progress.continues(.init(running: running, lastEnd: lastEnd), now: now) == continues)
    }

    @Test func itWaitsForBalancersThatCheckIt() {
        let progress = DrainProgress(began: 100, end: 200, quiet: 20)
        #expect(progress.continues(.init(isAwaited: true), now: 150))
        #expect(!progress.continues(.init(isAwaited: true), now: 200))
        // Where there are none.
        #expect(!DrainProgress(began: 100, end: 200, quiet: 0).continues(.init(isAwaited: true), now: 150))
    }

    @Test func withoutAGraceItIsOverAtOnce() {
        #expect(!DrainProgress(began: 5, end: 5, quiet: 0).continues(.init(running: 3), now: 5))
        #expect(!DrainProgress(began: 5, end: 50, quiet: 0).continues(.init(), now: 5))
    }
}
