import CachePolicy
import HTTPModel
import Synchronization

/// Who asks regularly how the server is, each by its address, and how often each has heard that it is draining. A value;
/// times are monotonic, in nanoseconds.
///
/// A balancer sends requests until several checks in a row have failed: three by default, with HAProxy as with nginx
/// Plus. Once that many were answered `draining`, it sends no more.
struct ProbeLedger {
    static let enough = 3
    /// A balancer checks every few seconds. Whoever asks more rarely is none, and one that has not asked for so long has
    /// stopped.
    var longestInterval: UInt64 = 10_000_000_000
    /// At most so many are remembered.
    static let most = 64

    struct Entry {
        var last: UInt64
        var inARow = 0
        var whileDraining = 0
    }

    private(set) var entries: [IPAddress: Entry] = [:]

    mutating func note(from address: IPAddress, isDraining: Bool, now: UInt64) {
        if entries.count >= Self.most { entries = entries.filter { isCurrent($1, now) } }
        guard entries[address] != nil || entries.count < Self.most else { return }
        var entry = entries[address] ?? Entry(last: now)
        if !isCurrent(entry, now) { entry = Entry(last: now) }
        entry.last = now
        entry.inARow = min(Self.enough, entry.inARow +| 1)
        if isDraining { entry.whileDraining = min(Self.enough, entry.whileDraining +| 1) }
        entries[address] = entry
    }

    /// Whether one of them may send requests yet.
    func awaitsMore(now: UInt64) -> Bool {
        entries.values.contains {
            $0.inARow >= Self.enough && $0.whileDraining < Self.enough && isCurrent($0, now)
        }
    }

    private func isCurrent(_ entry: Entry, _ now: UInt64) -> Bool { now -| entry.last <= longestInterval }
}

extension ProbeLedger {
    /// The ledger of probes that all loops share: each check of a balancer may arrive on another one.
    final class SharedProbes: Sendable {
        let ledger = Mutex(ProbeLedger())
    }
}
