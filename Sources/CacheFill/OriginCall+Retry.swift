import CachePolicy

extension OriginCall {
    /// Decides when a fetch sends its request, and when it tries again after a failure. A value without clock or
    /// randomness; all times in seconds.
    ///
    /// A host in back-off (`OriginBackoff`) is waited for only as long as the clients can be kept waiting: that is the
    /// fetch's *patience*.
    struct Retry {
        /// The longest waits for a host.
        struct Patience {
            /// For clients that have received nothing yet.
            let first: Double
            /// For clients whose response would have to be cut off otherwise.
            let midway: Double
        }

        /// Who waits for the bytes.
        enum Audience {
            /// Only downloads: they have time, and retry by themselves.
            case downloads
            /// A client that can be given a stored response: it is not kept waiting.
            case whoHasIt
            case whoHasNothing
            /// Bytes have been sent, or nobody waits.
            case midway
        }

        /// What to do now.
        enum Turn: Equatable {
            case now
            case later(afterSeconds: Double)
            /// The host's back-off is longer than anybody waits.
            case busy(retryAfter: Int64)
        }

        /// What to do about a failure.
        enum Verdict: Equatable {
            case again(afterSeconds: Double)
            case fail
            /// The host's back-off is longer than anybody waits.
            case busy(retryAfter: Int64)
        }

        /// A failure and its circumstances.
        struct Failure {
            /// Whether the same request may succeed later.
            let isTransient: Bool
            /// Whether another answer could be matched to the same version.
            let canContinue: Bool
            /// Whether the bytes are needed. False for a validation: the client can be given the stored response.
            let isNeeded: Bool
            /// Whether only downloads wait.
            let isForDownloads: Bool
            /// Bytes that this fetch has delivered so far.
            let delivered: Int64
        }

        private let policy: RetryPolicy
        private let midway: Double
        private var patience: Double
        /// Failures in a row without a byte between them.
        private var failures = 0
        private var deliveredBefore: Int64 = 0

        init(_ policy: RetryPolicy, _ patience: Patience, for audience: Audience) {
            (self.policy, midway) = (policy, patience.midway)
            self.patience =
                switch audience {
                case .downloads, .whoHasIt: 0
                case .whoHasNothing: patience.first
                case .midway: patience.midway
                }
        }

        /// Call before each request.
        /// - Parameters:
        ///   - wait: the host's remaining back-off; 0 if there is none.
        ///   - random: in 0..<1.
        func turn(wait: Double, random: Double) -> Turn {
            guard wait > 0 else { return .now }
            guard wait <= patience else { return .busy(retryAfter: Self.whole(wait)) }
            return .later(afterSeconds: Self.spread(wait, random))
        }

        /// Call after a failed attempt.
        /// - Parameters:
        ///   - wait: the host's remaining back-off as known now.
        ///   - random: in 0..<1.
        mutating func failed(_ failure: Failure, wait: Double, random: Double) -> Verdict {
            if failure.delivered > deliveredBefore { failures = 0 }
            deliveredBefore = failure.delivered
            failures += 1
            guard failure.isTransient, failure.canContinue, failure.isNeeded, !failure.isForDownloads,
                let backoff = policy.delay(attempt: failures, random: random)
            else { return .fail }
            patience = midway
            guard wait <= patience else { return .busy(retryAfter: Self.whole(wait)) }
            return .again(afterSeconds: max(backoff, wait > 0 ? Self.spread(wait, random) : 0))
        }

        /// Adds jitter, so that fetches waiting for one host do not all return at once.
        private static func spread(_ wait: Double, _ random: Double) -> Double { wait + random * min(1, wait / 10) }

        static func whole(_ seconds: Double) -> Int64 { Int64(min(seconds, 1e9).rounded(.up)) }
    }
}
