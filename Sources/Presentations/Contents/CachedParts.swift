import CachePolicy
import DiskCache
import HTTPModel
import Playlists

/// What is cached of the resources that a presentation names: one query for all its parts, and another for each
/// file of which only ranges are needed and that is not complete. Blocks.
struct CachedParts {
    private let store: CacheStore
    private let policy: ProxyPolicy
    private var parts: [CacheKey: IndexParts.Part] = [:]
    /// How many more times the index may be queried for a single resource.
    private var lookUps: Int
    /// Incomplete files of which ranges are named; nil if nothing of one is cached.
    private var files: [CacheKey: CacheCoverage?] = [:]

    /// The most files remembered at once.
    private static let mostFiles = 1000

    /// - Parameter lookUps: how many times the index may be queried for a single resource. How many there are is
    ///   up to a playlist from elsewhere; those beyond this limit count as not cached.
    init(of whole: CacheKey, _ store: CacheStore, _ policy: ProxyPolicy, lookUps: Int = .max) throws(StoreError) {
        (self.store, self.policy, self.lookUps) = (store, policy, lookUps)
        for part in try store.parts.cached(of: whole) { parts[part.key] = part }
    }

    /// What is cached of an address.
    struct State: Equatable {
        var cached: Int64 = 0
        var isWhole = false
    }

    /// - Parameters:
    ///   - range: the range; nil for all of it.
    ///   - isPart: whether a whole resource counts only if it is a part of this presentation; otherwise the index
    ///     is queried, as another presentation may have it, too.
    mutating func state(of url: OriginURL, _ range: Range<Int64>?, isPart: Bool = false) throws(StoreError) -> State {
        let key = policy.resolve(url).key
        if let part = parts[key], part.isComplete {
            guard let range else { return State(cached: part.length, isWhole: true) }
            // A range in a playlist may extend beyond the file.
            let there = range.clamped(to: 0..<max(0, part.length)) // no trap: not below 0
            return State(cached: there.length, isWhole: there.isEmpty == range.isEmpty)
        }
        guard let range else {
            if let part = parts[key] { return State(cached: part.cached) }
            return isPart ? State() : state(of: try lookUp(key), nil)
        }
        return state(of: try coverage(ofFile: key), range)
    }

    private func state(of coverage: CacheCoverage?, _ range: Range<Int64>?) -> State {
        guard let coverage else { return State() }
        let whole = 0..<max(0, coverage.length) // no trap: not below 0
        let wanted = range?.clamped(to: whole) ?? whole
        var cached: Int64 = 0
        for place in coverage.place(of: wanted.lowerBound)..<coverage.ranges.count {
            let there = coverage.ranges[place]
            guard there.lowerBound < wanted.upperBound else { break }
            cached +|= there.clamped(to: wanted).length
        }
        return State(cached: cached, isWhole: cached == wanted.length && wanted.isEmpty == (range ?? whole).isEmpty)
    }

    private mutating func coverage(ofFile key: CacheKey) throws(StoreError) -> CacheCoverage? {
        if let known = files[key] { return known }
        let found = try lookUp(key)
        if files.count >= Self.mostFiles { files = [:] }
        files.updateValue(found, forKey: key)
        return found
    }

    private mutating func lookUp(_ key: CacheKey) throws(StoreError) -> CacheCoverage? {
        guard lookUps > 0 else { return nil }
        lookUps -= 1
        return try store.coverage(key)
    }
}

extension CacheCoverage {
    /// The position in `ranges` of the first range that ends behind an offset; their count if none does. A file
    /// may have thousands, and a playlist hundreds of thousands of ranges.
    fileprivate func place(of offset: Int64) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = low + (high - low) / 2
            if ranges[middle].upperBound <= offset { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension Range<Int64> {
    fileprivate var length: Int64 { upperBound -| lowerBound }
}
