import CachePolicy

/// The resources in use, by key, and those that are kept open in case. Each has a file descriptor, and holds heads and
/// tables in memory.
struct ResourceTable {
    private var resources: [CacheKey: OpenResource] = [:]
    /// Resources kept open at most, unless more are in use.
    private let capacity: Int
    /// Made since it was last estimated what all of them hold.
    private var unweighed = 0

    /// What all open resources may hold in memory, heads and tables, as it is estimated now and then.
    private static let mostBytes = 32 << 20

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { resources.count }

    var keys: [CacheKey] { Array(resources.keys) }

    func open(_ key: CacheKey) -> OpenResource? { resources[key] }

    /// - Returns: the one that is open, or a new one; and those that are closed for it, to be released where no lock is
    ///   held.
    mutating func resource(_ key: CacheKey) -> (OpenResource, closed: [OpenResource]) {
        if let resource = resources[key] { return (resource, []) }
        var closed = resources.count >= capacity ? close(downTo: capacity / 4 * 3) : []
        unweighed += 1
        // Weighing looks at all of them: the more there are, the more have to be new. An open resource holds some 8
        // KiB, so that those which are new by then hold a tenth of the limit.
        if unweighed >= max(32, resources.count / 8) {
            unweighed = 0
            closed += close(downToBytes: Self.mostBytes)
        }
        let resource = OpenResource(key)
        resources[key] = resource
        return (resource, closed)
    }

    /// Closes half of what is open, as far as it is idle.
    mutating func closeHalf() -> [OpenResource] { close(downTo: resources.count / 2) }

    mutating func closeAll() -> [OpenResource] {
        defer { resources = [:] }
        return Array(resources.values)
    }

    /// Closes the longest unused resources until what is left holds no more than this, as far as they are idle.
    private mutating func close(downToBytes most: Int) -> [OpenResource] {
        var surplus = resources.values.reduce(-most) { $0 + $1.memoryBytes }
        guard surplus > 0 else { return [] }
        return close(
            longestIdle.prefix { resource in
                defer { surplus -= resource.memoryBytes }
                return surplus > 0
            })
    }

    /// Closes the longest unused resources. One that a reader still holds is merely opened again by the next.
    private mutating func close(downTo count: Int) -> [OpenResource] {
        close(longestIdle.prefix(max(0, resources.count - count)))
    }

    private var longestIdle: [OpenResource] {
        resources.values.compactMap { resource in resource.idleSince.map { (resource, $0) } }.sorted { $0.1 < $1.1 }
            .map(\.0)
    }

    private mutating func close(_ idle: ArraySlice<OpenResource>) -> [OpenResource] {
        for resource in idle { resources[resource.key] = nil }
        return Array(idle)
    }
}
