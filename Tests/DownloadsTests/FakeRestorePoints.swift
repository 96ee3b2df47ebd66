import CachePolicy
import DiskCache
import Downloads
import Synchronization

/// A cache of which a test says what is in it. The key of a resource is its URL without the query.
final class FakeRestorePoints: RestorePointKeeper {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private struct State {
        var present: [String: RestorePoint] = [:]
        var noted: [String] = []
        var notedURLs: [String] = []
        var released: [RestorePoint] = []
        var failure: Failure?
        var moved: [String: String] = [:]
        var freed: Int64 = 1000
        var titles: [String: String] = [:]
        var leastMissed: [CachedResource] = []
        var releases: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    static func key(_ url: OriginURL) -> String { String(url.absolute.prefix { $0 != "?" }) }

    func key(of url: OriginURL) -> String {
        let key = Self.key(url)
        return state.withLock { $0.moved[key] } ?? key
    }

    /// The media of a page turns out to be that of another.
    func move(_ page: String, to other: String) { state.withLock { $0.moved[Desk.url(page)] = Desk.url(other) } }

    /// What is cached of a resource from now on.
    func has(_ name: String, isPinned: Bool = false, _ runs: [Int64], hits: Int64 = 0) {
        let key = Desk.url(name)
        let former = RestorePoint.Former(generation: "g1", present: runs, hits: hits)
        state.withLock { $0.present[key] = RestorePoint(key: key, wasPinned: isPinned, former: [former]) }
    }

    /// What goes wrong from now on.
    var failure: Failure? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }

    /// What is done at each release, before it returns.
    func onRelease(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.releases = body } }

    func restorePoint(_ url: OriginURL) throws -> RestorePoint {
        let key = key(of: url)
        return try state.withLock { state in
            if let failure = state.failure { throw failure }
            state.noted.append(key)
            state.notedURLs.append(url.absolute)
            return state.present[key] ?? RestorePoint(key: key, wasPinned: false, former: [])
        }
    }

    /// What could go if room is needed.
    func hasPinned(_ reports: [CachedResource]) { state.withLock { $0.leastMissed = reports } }

    var titles: [String: String] { state.withLock { $0.titles } }

    func noteOrder(title: String?, category: String?, isByHand: Bool, of key: String) {
        state.withLock { $0.titles[key] = title }
    }

    func leastMissed(limit: Int) -> [CachedResource] { state.withLock { Array($0.leastMissed.prefix(limit)) } }

    func release(_ restorePoint: RestorePoint) throws -> Int64 {
        let (freed, body) = try state.withLock { state in
            if let failure = state.failure { throw failure }
            state.released.append(restorePoint)
            return (state.freed, state.releases)
        }
        body?()
        return freed
    }

    var noted: [String] { state.withLock { $0.noted } }
    var notedURLs: [String] { state.withLock { $0.notedURLs } }
    var released: [RestorePoint] { state.withLock { $0.released } }
    var releasedKeys: [String] { released.map(\.key) }
}
