import CachePolicy
import Downloads
import Synchronization

/// A cache of which a test says what is in it. The key of a resource is its URL without the query.
final class FakeClaims: ClaimKeeper {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private struct State {
        var present: [String: DownloadClaim] = [:]
        var claimed: [String] = []
        var released: [DownloadClaim] = []
        var failure: Failure?
        var freed: Int64 = 1000
        var releases: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    static func key(_ url: OriginURL) -> String { String(url.absolute.prefix { $0 != "?" }) }

    /// What is cached of a resource from now on.
    func has(_ name: String, isPinned: Bool = false, _ runs: [Int64], hits: Int64 = 0) {
        let key = Desk.url(name)
        let former = DownloadClaim.Former(generation: "g1", present: runs, hits: hits)
        state.withLock { $0.present[key] = DownloadClaim(key: key, wasPinned: isPinned, former: [former]) }
    }

    /// What goes wrong from now on.
    var failure: Failure? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }

    /// What is done at each release, before it returns.
    func onRelease(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.releases = body } }

    func claim(_ url: OriginURL) throws -> DownloadClaim {
        try state.withLock { state in
            if let failure = state.failure { throw failure }
            let key = Self.key(url)
            state.claimed.append(key)
            return state.present[key] ?? DownloadClaim(key: key, wasPinned: false, former: [])
        }
    }

    func release(_ claim: DownloadClaim) throws -> Int64 {
        let (freed, body) = try state.withLock { state in
            if let failure = state.failure { throw failure }
            state.released.append(claim)
            return (state.freed, state.releases)
        }
        body?()
        return freed
    }

    var claimed: [String] { state.withLock { $0.claimed } }
    var released: [DownloadClaim] { state.withLock { $0.released } }
    var releasedKeys: [String] { released.map(\.key) }
}
