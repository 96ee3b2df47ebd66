import CachePolicy

extension FetchState {
    /// What to do with a transfer that nobody follows any more.
    enum LeftTransfer: Equatable {
        case stop
        /// Finish the chunk in progress, if that is quick.
        case finishChunk
        /// Continue up to the read-ahead window and wait there: players reconnect when they seek, so the next request
        /// may come at once.
        case linger

        /// - Parameters:
        ///   - isComingIn: whether a transfer runs and its bytes are stored.
        ///   - lingerSeconds: 0 to disable lingering.
        static func way(
            wasLeftForGood: Bool, isComingIn: Bool, _ rule: ResolvedRule, lingerSeconds: Double
        ) -> LeftTransfer {
            // A download does not return at once, and bytes prefetched for a player are not wanted any more.
            if wasLeftForGood { return .stop }
            // Not if the rule fetches only what is read, or bytes are metered: even for a paused transfer, the kernel
            // keeps receiving.
            guard isComingIn, lingerSeconds > 0, rule.fill != .read, !rule.isMetered else { return .finishChunk }
            return .linger
        }
    }
}
