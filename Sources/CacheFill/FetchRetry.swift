import CachePolicy

/// When a fetch asks its origin, and when it asks again after a failure: a value, without clock and dice. Seconds.
///
/// A host that wants to be left alone (`OriginBackoff`) is waited for no longer than whoever waits for the bytes can be
/// kept waiting: that is its *patience*.
struct FetchRetry {
    /// How long a host is waited for at most.
    struct Patience {
        /// By who has heard nothing yet.
        let first: Double
        /// By who would have to be cut otherwise.
        let midway: Double
    }

    /// Who waits for the first byte.
    enum Audience {
        /// Downloads alone: they have time, and their own way of trying again.
        case downloads
        /// Who has a stored response is not kept waiting.
        case whoHasIt
        case whoHasNothing
        /// Bytes have gone out, or nobody waits.
        case midway
    }

    /// What is to be done now.
    enum Turn: Equatable {
        case now
        case later(afterSeconds: Double)
        /// The host wants to be left alone for longer than anybody waits.
        case busy(retryAfter: Int64)
    }

    /// What is to be done about a failure.
    enum Verdict: Equatable {
        case again(afterSeconds: Double)
        case fail
        /// The host wants to be left alone for longer than anybody waits.
        case busy(retryAfter: Int64)
    }

    /// What went wrong, and for whom.
    struct Failure {
        /// Whether the same request may well succeed later.
        let isTransient: Bool
        /// Whether an answer to another request could be told from another version's.
        let canGoOn: Bool
        /// Whether anybody has to have it from here: not who has a stored response.
        let isNeeded: Bool
        /// Whether nobody waits but downloads.
        let isForDownloads: Bool
        /// Bytes that this fetch has brought so far.
        let brought: Int64
    }

    private let policy: RetryPolicy
    private let midway: Double
    private var patience: Double
    /// In a row, without a byte between them.
    private var failures = 0
    private var broughtBefore: Int64 = 0

    init(_ policy: RetryPolicy, _ patience: Patience, for audience: Audience) {
        (self.policy, midway) = (policy, patience.midway)
        self.patience =
            switch audience {
            case .downloads, .whoHasIt: 0
            case .whoHasNothing: patience.first
            case .midway: patience.midway
            }
    }

    /// Before the origin is asked.
    /// - Parameters:
    ///   - wait: for how long its host wants to be left alone; 0 where it may be asked.
    ///   - random: 0 up to, but not including, 1.
    func turn(wait: Double, random: Double) -> Turn {
        guard wait > 0 else { return .now }
        guard wait <= patience else { return .busy(retryAfter: Self.whole(wait)) }
        return .later(afterSeconds: Self.spread(wait, random))
    }

    /// An attempt has failed.
    /// - Parameters:
    ///   - wait: for how long the host wants to be left alone, by what is known now.
    ///   - random: 0 up to, but not including, 1.
    mutating func failed(_ failure: Failure, wait: Double, random: Double) -> Verdict {
        if failure.brought > broughtBefore { failures = 0 }
        broughtBefore = failure.brought
        failures += 1
        guard failure.isTransient, failure.canGoOn, failure.isNeeded, !failure.isForDownloads,
            let backoff = policy.delay(attempt: failures, random: random)
        else { return .fail }
        patience = midway
        guard wait <= patience else { return .busy(retryAfter: Self.whole(wait)) }
        return .again(afterSeconds: max(backoff, wait > 0 ? Self.spread(wait, random) : 0))
    }

    /// Those who wait for one host do not all come at once.
    private static func spread(_ wait: Double, _ random: Double) -> Double { wait + random * min(1, wait / 10) }

    private static func whole(_ seconds: Double) -> Int64 { Int64(min(seconds, 1e9).rounded(.up)) }
}
