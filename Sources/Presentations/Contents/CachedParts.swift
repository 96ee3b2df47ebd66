import CachePolicy
import DiskCache
import HTTPModel
import Playlists

/// What is cached of the resources that a presentation names: one question for all its parts, and one more for each
/// file of which only ranges are wanted and not all is there. Blocks.
struct CachedParts {
    private let store: CacheStore
    private let policy: ProxyPolicy
    private var parts: [CacheKey: PartReport] = [:]
    /// Files of which only a part is there, and what is no part of this presentation: another one has it too.
    private var others: [CacheKey: ResourceCoverage?] = [:]

    init(of whole: CacheKey, _ store: CacheStore, _ policy: ProxyPolicy) throws(StoreError) {
        (self.store, self.policy) = (store, policy)
        for part in try store.parts(of: whole) { parts[part.key] = part }
    }

    /// What is there of an address.
    struct State {
        var cached: Int64 = 0
        var isWhole = false
    }

    /// - Parameter range: nil for all of it.
    mutating func state(of url: OriginURL, _ range: Range<Int64>?) throws(StoreError) -> State {
        let key = policy.resolve(url).key
        if let part = parts[key], part.isComplete {
            guard let range else { return State(cached: part.length, isWhole: true) }
            // What a playlist says of a file may be more than there is.
            let there = range.clamped(to: 0..<max(0, part.length)) // no trap: not below 0
            return State(cached: there.length, isWhole: there == range)
        }
        if range == nil, let part = parts[key] { return State(cached: part.cached) }
        return state(of: try coverage(key), range)
    }

    private func state(of coverage: ResourceCoverage?, _ range: Range<Int64>?) -> State {
        guard let coverage else { return State() }
        let wanted = range ?? 0..<coverage.length // no trap: a length is not negative
        let cached = coverage.present.reduce(0 as Int64) { $0 +| $1.clamped(to: wanted).length }
        return State(cached: cached, isWhole: cached == wanted.length)
    }

    private mutating func coverage(_ key: CacheKey) throws(StoreError) -> ResourceCoverage? {
        if let known = others[key] { return known }
        // What is not in the one answer is not cached, but for what belongs to another.
        let found = try store.coverage(key)
        others[key] = found
        return found
    }
}

extension Range<Int64> {
    fileprivate var length: Int64 { upperBound -| lowerBound }
}
