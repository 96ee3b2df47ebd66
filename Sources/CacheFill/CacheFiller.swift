import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Logging
import Metrics
import Synchronization
import Upstream

/// How gaps are filled. Bytes and seconds.
package struct FillSettings: Sendable {
    /// How far past its furthest reader a response goes that passes through memory.
    package var bufferReadAhead: Int64 = 2 << 20
    /// A body of unknown length longer than this is taken for a stream without end, and not stored.
    package var longestUnknownLength: Int64 = 256 << 20
    /// A transfer that nobody follows any more waits so long for somebody to come back: players reconnect when they
    /// seek.
    package var lingerSeconds: Double = 5
    /// Then it has so long to finish its chunk.
    package var lastChunkSeconds: Double = 2
    package var retry = RetryPolicy()
    /// A request whose answer has not begun waits so long for a host that wants to be left alone, or fails.
    package var longestWait: Double = 10
    /// The same for one whose answer has begun: it would have to be cut.
    package var longestMidwayWait: Double = 60
    /// A clock that never goes back, in nanoseconds, by which hosts are left alone.
    package var clock: @Sendable () -> UInt64 = MonotonicClock.nanoseconds

    package init() {}
}

/// Fills each gap once: the resources in use, by key, and what all loops share about filling them.
package final class CacheFiller: Sendable {
    package let store: CacheStore
    let settings: FillSettings
    package let policy: Current<ProxyPolicy>
    /// The time in seconds since 1970, by which responses age.
    package let now: @Sendable () -> Int64
    /// A clock that never goes back, in nanoseconds.
    package var instant: UInt64 { settings.clock() }
    package let backoff: OriginBackoff
    let metrics: ProxyMetrics
    package let logger: Logger
    let balance = FetchBalance()
    let promises = FillPromises()
    private let resources: Mutex<ResourceTable>
    private let lingering = Atomic<Int>(0)
    /// Of all loops.
    private let running = Mutex<Set<SharedFetch>>([])

    /// - Parameters:
    ///   - capacity: resources kept open; each has a file descriptor.
    ///   - now: the time in seconds since 1970.
    package init(
        store: CacheStore, settings: FillSettings, policy: Current<ProxyPolicy>, capacity: Int, metrics: ProxyMetrics,
        logger: Logger,
        now: @escaping @Sendable () -> Int64
    ) {
        self.store = store
        self.settings = settings
        self.policy = policy
        self.now = now
        backoff = OriginBackoff(nanoseconds: settings.clock)
        self.metrics = metrics
        self.logger = logger
        resources = Mutex(ResourceTable(capacity: capacity))
        store.whenChanged { [weak self] key, generation in
            let resource = self?.resources.withLock { $0.open(key) }
            resource?.lookAgain(after: generation)
        }
        // They let go of their files here, outside of the lock.
        store.whenShortOfFiles { [weak self] in _ = self?.resources.withLock { $0.closeHalf() } }
    }

    /// How far past its furthest reader a transfer goes at most, whatever the rules say: a cache that is small beside
    /// that would evict what it has just fetched.
    var readAhead: Int64 { store.ledger.fairShare }

    /// A resource that takes more of the cache than this, in bytes, is not filled beyond what is read of it: all else
    /// would have to go.
    var largestFilled: Int64 { store.ledger.limit / 2 }

    /// A transfer is about to linger. Each keeps one extent from being evicted, the one that it is in: together no more
    /// than a small part of the cache.
    /// - Returns: whether it may; then `endLinger` has to follow.
    func beginLinger(_ geometry: ChunkGeometry) -> Bool {
        guard lingering.add(1, ordering: .relaxed).newValue > store.ledger.fairShare / geometry.extentSize else {
            return true
        }
        endLinger()
        return false
    }

    func endLinger() { lingering.subtract(1, ordering: .relaxed) }

    func began(_ fetch: SharedFetch) { running.withLock { _ = $0.insert(fetch) } }

    func ended(_ fetch: SharedFetch) { running.withLock { _ = $0.remove(fetch) } }

    /// Whether bytes come in that a reader needs soon, to be kept or to pass.
    var isBeingRead: Bool { running.withLock { $0 }.contains { $0.isBeingRead } }

    package func resource(_ key: CacheKey) -> OpenResource {
        var (resource, closed) = resources.withLock { $0.resource(key) }
        guard !closed.isEmpty else { return resource }
        // They let go of their files, outside of the lock.
        closed = []
        store.closeLetGo()
        return resource
    }

    /// What is known of a resource. The index is asked where it may know more.
    /// - Parameter wake: called once when it has answered, from any thread, perhaps before this returns; not called for
    ///   another view than `lookingUp`.
    package func look(at resource: OpenResource, wake: @autoclosure () -> @Sendable () -> Void) -> OpenResource.View {
        while true {
            if let view = resource.view() {
                if case .lookingUp = view { resource.whenLookedUp(wake()) }
                return view
            }
            guard store.certainlyLacks(resource.key) else {
                resource.whenLookedUp(wake())
                lookUp(resource)
                return .lookingUp
            }
            resource.lookedUp(.some(nil))
        }
    }

    private func lookUp(_ resource: OpenResource) {
        store.load(resource.key) { [self] result in
            switch result {
            case .success(let generation): resource.lookedUp(.some(generation))
            case .failure(let error):
                // Playing goes on without what may be there.
                store.reportDisk("look a resource up", error)
                resource.lookedUp(nil)
            }
        }
    }

    /// Whether a range of a resource, or all of it, is known to be cached without asking the index: false where it would
    /// have to be asked.
    package func isPresent(_ key: CacheKey, _ range: Range<Int64>?) -> Bool {
        guard let generation = resources.withLock({ $0.open(key) })?.current, let length = generation.length else {
            return false
        }
        let whole = 0..<max(0, length) // no trap: not below 0
        return generation.coverage(of: range?.clamped(to: whole) ?? whole) == .whole
    }

    package var openCount: Int { resources.withLock { $0.count } }

    var openKeys: [CacheKey] { resources.withLock { $0.keys } }

    /// Lets go of all resources, once no loop runs any more. What still reads keeps its own.
    package func closeAll() {
        balance.clear()
        _ = resources.withLock { $0.closeAll() }
    }
}
