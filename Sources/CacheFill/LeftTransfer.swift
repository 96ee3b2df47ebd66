import CachePolicy

/// What becomes of a transfer that nobody follows any more.
enum LeftTransfer: Equatable {
    case stop
    /// What was begun of a chunk is finished, if that is quick.
    case finishChunk
    /// It goes on up to its window, and waits there: what was begun may be asked for again at once, as players reconnect
    /// when they seek.
    case linger

    /// - Parameters:
    ///   - isComingIn: whether a transfer runs, and what it brings is kept for others.
    ///   - lingerSeconds: 0 for not at all.
    static func way(
        wasLeftForGood: Bool, isComingIn: Bool, _ rule: ResolvedRule, lingerSeconds: Double
    ) -> LeftTransfer {
        // A download does not come back at once, and what was fetched ahead of a player is not wanted any more.
        if wasLeftForGood { return .stop }
        // Not where only what is read is to be fetched, or bytes are metered: the kernel goes on taking in what the
        // origin sends.
        guard isComingIn, lingerSeconds > 0, rule.fill != .read, !rule.isMetered else { return .finishChunk }
        return .linger
    }
}

/// A chunk in the middle of which everybody has left.
enum LeftChunk {
    /// What asking once more costs beside the bytes, in bytes that come meanwhile.
    private static let requestCost: Int64 = 16 << 10

    /// Whether what is missing of it costs less than to ask for all of it again; an incomplete chunk is not kept.
    static func isWorthFinishing(received: Int64, of size: Int64) -> Bool {
        received > 0 && size - received <= received + requestCost
    }
}
