import CachePolicy
import HTTPModel

/// The balancers that ask whether to send requests here. A value, without a clock; times are monotonic, in nanoseconds.
///
/// A balancer takes several refusals for an answer (HAProxy: three of them, two seconds apart). Until then it sends
/// requests, and a server that had closed would fail them.
struct Probers {
    private struct Prober {
        var last: UInt64
        /// Answers within `memory` of each other.
        var answers: Int
        /// Those of them that said that the server is draining.
        var refusals: Int
    }

    private var probers: [IPAddress: Prober] = [:]

    /// Whoever has not asked for so long does not ask regularly, or no longer.
    static let memory: UInt64 = 10_000_000_000
    /// So many refusals are enough.
    static let enough = 3
    /// More than a site has balancers.
    static let most = 64

    mutating func answered(_ address: IPAddress, isDraining: Bool, now: UInt64) {
        if probers[address] == nil, probers.count >= Self.most {
            probers = probers.filter { now -| $1.last <= Self.memory }
            guard probers.count < Self.most else { return }
        }
        var prober = probers[address] ?? Prober(last: now, answers: 0, refusals: 0)
        if now -| prober.last > Self.memory { (prober.answers, prober.refusals) = (0, 0) }
        prober.last = now
        prober.answers += 1 // no trap: as often as it has asked
        prober.refusals = isDraining ? prober.refusals + 1 : 0
        probers[address] = prober
    }

    /// Whether all that ask regularly know that the server is draining.
    func haveNoticed(now: UInt64) -> Bool {
        probers.values.allSatisfy {
            $0.refusals >= Self.enough || $0.answers < 2 || now -| $0.last > Self.memory
        }
    }
}
