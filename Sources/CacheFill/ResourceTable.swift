import CachePolicy

/// The open resources by key, both used and idle ones. Each has a file descriptor, and holds heads and tables in
/// memory.
struct ResourceTable {
    private(set) var byKey: [CacheKey: OpenResource] = [:]
    /// How many resources to keep open; there are more only if more are in use.
    private let capacity: Int
    /// Resources added since memory was last estimated.
    private var unweighed = 0

    /// The most memory that all open resources should hold, heads and tables. It is estimated from time to time.
    private static let mostBytes = 32 << 20

    init(capacity: Int) { self.capacity = capacity }

    /// - Returns: the open resource, or a new one, and the resources closed for it, to be released outside any lock.
    mutating func resource(_ key: CacheKey) -> (OpenResource, closed: [OpenResource]) {
        if let resource = byKey[key] { return (resource, []) }
        var closed = byKey.count >= capacity ? close(downTo: capacity / 4 * 3) : []
        unweighed += 1
        // An estimate visits all resources, so its interval grows with their number. An open resource holds about 8
        // KiB: those added between two estimates hold a tenth of the limit.
        if unweighed >= max(32, byKey.count / 8) {
            unweighed = 0
            closed += close(downToBytes: Self.mostBytes)
        }
        let resource = OpenResource(key)
        byKey[key] = resource
        return (resource, closed)
    }

    /// Closes half of the open resources, as far as they are idle.
    mutating func closeHalf() -> [OpenResource] { close(downTo: byKey.count / 2) }

    mutating func closeAll() -> [OpenResource] {
        defer { byKey = [:] }
        return Array(byKey.values)
    }

    /// Closes the least recently used idle resources until the rest hold at most this much.
    private mutating func close(downToBytes most: Int) -> [OpenResource] {
        var surplus = byKey.values.reduce(-most) { $0 + $1.memoryBytes }
        guard surplus > 0 else { return [] }
        return close(
            longestIdle.prefix { resource in
                defer { surplus -= resource.memoryBytes }
                return surplus > 0
            })
    }

    /// Closes the least recently used idle resources. If a reader still holds one, the next request just opens it
    /// again.
    private mutating func close(downTo count: Int) -> [OpenResource] {
        close(longestIdle.prefix(max(0, byKey.count - count)))
    }

    private var longestIdle: [OpenResource] {
        byKey.values.compactMap { resource in resource.idleSince.map { (resource, $0) } }.sorted { $0.1 < $1.1 }
            .map(\.0)
    }

    private mutating func close(_ idle: ArraySlice<OpenResource>) -> [OpenResource] {
        for resource in idle { byKey[resource.key] = nil }
        return Array(idle)
    }
}
