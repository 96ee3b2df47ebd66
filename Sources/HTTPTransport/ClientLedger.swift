import CachePolicy
import HTTPModel

/// The connections and recent requests of each client. A value, without a lock and a clock.
///
/// Clients without connections are forgotten when their requests no longer count, at the latest when there are too many.
struct ClientLedger {
    /// At most so many clients without connections are remembered: 64 bytes each.
    static let mostIdle = 1 << 16
    private static let leastSweep = 1024

    struct Entry {
        var connections = 0
        /// When the next request would be due if all that have arrived had come at the rate (the generic cell rate
        /// algorithm, ITU-T I.371).
        var due: UInt64 = 0
    }

    private(set) var entries: [IPAddress: Entry] = [:]
    /// So many clients are looked through for those that can be forgotten: at twice as many as stayed last time, so
    /// that each one costs the same.
    private var sweepAt = leastSweep

    /// Counts a connection, unless the client has so many.
    mutating func enter(_ client: IPAddress, atMost limit: Int, now: UInt64) -> Bool {
        sweepIfFull(now)
        guard entries[client, default: Entry()].connections < limit else { return false }
        entries[client, default: Entry()].connections += 1
        return true
    }

    mutating func leave(_ client: IPAddress, now: UInt64) {
        guard var entry = entries[client] else { return }
        entry.connections = max(0, entry.connections - 1)
        entries[client] = entry.connections == 0 && entry.due <= now ? nil : entry
    }

    /// Counts a request, unless the client has sent too many. As many as the rate names may come at once.
    /// - Returns: how long to wait if it has, in nanoseconds; otherwise nil.
    mutating func request(of client: IPAddress, atMost rate: RequestRate, now: UInt64) -> UInt64? {
        sweepIfFull(now)
        let most = rate.interval *| UInt64(rate.count) // no trap: 1 to a million
        // It may have been reckoned at a slower rate, before that was changed: nobody waits longer than at this one.
        let due = min(max(entries[client]?.due ?? 0, now), now +| most)
        let next = due +| rate.interval
        let ahead = next -| now
        guard ahead <= most else {
            entries[client]?.due = due
            return ahead -| most
        }
        entries[client, default: Entry()].due = next
        return nil
    }

    private mutating func sweepIfFull(_ now: UInt64) {
        guard entries.count >= sweepAt else { return }
        entries = entries.filter { $1.connections > 0 || $1.due > now }
        if entries.count > Self.mostIdle { entries = entries.filter { $1.connections > 0 } }
        sweepAt = max(Self.leastSweep, 2 * entries.count)
    }
}
