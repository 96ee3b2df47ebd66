import CachePolicy
import Synchronization

/// The short responses that are stored, for all loops: in memory, within a limit of their own. They stand in for
/// resources of which no media is stored; whoever looks one up looks for media first.
///
/// Lock order: its lock is taken first, then that of an `OpenResource`.
package final class ShortResponses: Sendable {
    private let table: Mutex<Table>
    /// So that a request costs no lock where there are none.
    private let count = Atomic<Int>(0)
    private let redirects = Atomic<Int>(0)

    init(limit: Int) { table = Mutex(Table(limit: limit)) }

    /// Changes the limit, in bytes.
    package func setLimit(_ bytes: Int) { change { $0.limit = bytes } }

    /// How many there are, and what they take of the limit.
    package var usage: (count: Int, bytes: Int) { table.withLock { ($0.count, $0.size) } }

    /// Those to a URL with this key, the latest first: one for each selection of request fields.
    package func responses(to url: @autoclosure () -> String, under key: CacheKey) -> [ShortResponse] {
        guard count.load(ordering: .relaxed) > 0 else { return [] }
        let (known, url) = (table.withLock { $0.use(.response, key) }, url())
        return known.filter { $0.url == url }
    }

    /// The redirects of a URL with this key.
    func redirects(of url: String, under key: CacheKey) -> [ShortResponse] {
        table.withLock { $0.use(.redirect, key) }.filter { $0.url == url }
    }

    var hasRedirects: Bool { redirects.load(ordering: .relaxed) > 0 }

    /// Stores a response, in place of one to the same URL with the same selection.
    /// - Parameter isCurrent: whether it is still what the origin has. Called with the lock held, so that an
    ///   invalidation is either seen or comes after this and removes it.
    func store(_ response: ShortResponse, _ kind: Table.Kind, under key: CacheKey, if isCurrent: () -> Bool) {
        change { table in
            if isCurrent() { table.insert(response, kind, key) }
        }
    }

    /// Removes what is stored under a key but for redirects: media has come, perhaps through these.
    func removeResponses(under key: CacheKey) {
        guard count.load(ordering: .relaxed) > 0 else { return }
        change { $0.remove(.response, key) }
    }

    /// Removes what is stored under a key: the origin has changed the resource. Takes the lock even where nothing is
    /// stored: another loop may be about to store what it has found current.
    func remove(_ key: CacheKey) { change { $0.remove(key) } }

    /// Removes the redirect of a URL.
    func removeRedirect(of url: String, under key: CacheKey) { change { $0.removeRedirect(of: url, key) } }

    /// Removes what is stored under a key and those of its variants.
    func removeAll(of keys: Set<CacheKey>) { change { $0.removeAll { keys.contains($0.withoutVariant) } } }

    package func removeAll() { change { $0.removeAll { _ in true } } }

    /// Dropped responses are released outside the lock.
    private func change(_ change: (inout Table) -> Void) {
        let dropped = table.withLock { table in
            change(&table)
            count.store(table.count, ordering: .relaxed)
            redirects.store(table.redirects, ordering: .relaxed)
            return table.takeDropped()
        }
        _ = dropped
    }
}

extension ShortResponses {
    /// Short responses by key, the least recently used of which make room for others. A value.
    struct Table {
        enum Kind: Hashable {
            /// Answers a request.
            case response
            /// Tells where to ask instead.
            case redirect
        }

        private struct Place: Hashable {
            let kind: Kind
            let key: CacheKey
        }

        private struct Entry {
            let response: ShortResponse
            var lastUse: UInt64
        }

        /// In bytes.
        var limit: Int { didSet { if size > limit { evict(downTo: limit) } } }
        private(set) var size = 0
        private(set) var count = 0
        private(set) var redirects = 0
        private var entries: [Place: [Entry]] = [:]
        private var uses: UInt64 = 0
        private var dropped: [ShortResponse] = []

        /// URLs and selections of one key; with more, the least recently stored goes.
        static let mostSelections = 16

        init(limit: Int) { self.limit = limit }

        mutating func takeDropped() -> [ShortResponse] {
            defer { dropped = [] }
            return dropped
        }

        /// Those under a key, the latest first. They count as used.
        mutating func use(_ kind: Kind, _ key: CacheKey) -> [ShortResponse] {
            let place = Place(kind: kind, key: key)
            guard let known = entries[place] else { return [] }
            uses &+= 1
            for index in known.indices { entries[place]?[index].lastUse = uses }
            return known.reversed().map(\.response)
        }

        mutating func insert(_ response: ShortResponse, _ kind: Kind, _ key: CacheKey) {
            guard size(of: response, key) <= limit else { return }
            let place = Place(kind: kind, key: key)
            remove(at: place) { Self.areAlike($0, response) }
            if entries[place]?.count ?? 0 >= Self.mostSelections, let first = entries[place]?.first?.response {
                remove(at: place) { $0 === first }
            }
            uses &+= 1
            entries[place, default: []].append(Entry(response: response, lastUse: uses))
            count(response, place, by: 1)
            // More than needed, so that the order is found out rarely.
            if size > limit { evict(downTo: limit - limit / 8) } // no trap: above 0
        }

        /// Several URLs may have one key.
        private static func areAlike(_ one: ShortResponse, _ other: ShortResponse) -> Bool {
            one.head.variant == other.head.variant && one.url == other.url
        }

        mutating func remove(_ key: CacheKey) {
            for kind in [Kind.response, .redirect] { remove(kind, key) }
        }

        mutating func remove(_ kind: Kind, _ key: CacheKey) { remove(at: Place(kind: kind, key: key)) { _ in true } }

        mutating func removeRedirect(of url: String, _ key: CacheKey) {
            remove(at: Place(kind: .redirect, key: key)) { $0.url == url }
        }

        mutating func removeAll(_ isChosen: (CacheKey) -> Bool) {
            for place in Array(entries.keys) where isChosen(place.key) { remove(at: place) { _ in true } }
        }

        private mutating func remove(at place: Place, _ isChosen: (ShortResponse) -> Bool) {
            guard let known = entries[place] else { return }
            let rest = known.filter { !isChosen($0.response) }
            guard rest.count < known.count else { return }
            for entry in known where isChosen(entry.response) {
                count(entry.response, place, by: -1)
                dropped.append(entry.response)
            }
            entries[place] = rest.isEmpty ? nil : rest
        }

        private mutating func count(_ response: ShortResponse, _ place: Place, by sign: Int) {
            size += sign * size(of: response, place.key) // no trap: within the limit, but for the last one
            count += sign
            if place.kind == .redirect { redirects += sign }
        }

        private func size(of response: ShortResponse, _ key: CacheKey) -> Int { response.size + key.text.utf8.count }

        /// Removes the least recently used.
        private mutating func evict(downTo most: Int) {
            let order = entries.flatMap { place, known in known.map { (place, $0) } }.sorted {
                $0.1.lastUse < $1.1.lastUse
            }
            for (place, entry) in order {
                guard size > most else { return }
                remove(at: place) { $0 === entry.response }
            }
        }
    }
}
