import Activity
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Logging
import Synchronization
import Upstream

#if DEBUG
/// Counts what its thread holds.
typealias Mutex = CountedMutex
#endif

/// Limits for fetches, in bytes and seconds.
package struct FillSettings: Sendable {
    /// The read-ahead window of a response that passes through memory.
    package var bufferReadAhead: Int64 = 2 << 20
    /// A longer body of unknown length counts as an endless stream and is not stored.
    package var longestUnknownLength: Int64 = 256 << 20
    /// How long a transfer without followers lingers: players reconnect when they seek.
    package var lingerSeconds: Double = 5
    /// How long it may then take to finish its chunk.
    package var lastChunkSeconds: Double = 2
    package var retry = RetryPolicy()
    /// How long a request that has no response yet waits for a host in back-off before it fails.
    package var longestWait: Double = 10
    /// The same once part of the response has been sent: giving up would cut it off.
    package var longestMidwayWait: Double = 60
    /// How long a parent may take to answer while another proxy waits for the same bytes; up to twice as long.
    package var parentPatience: Double = 3
    /// The limit on short responses, in bytes.
    package var shortResponseBytes: Int64 = 4 << 20
    /// A monotonic clock in nanoseconds, used for back-off.
    package var clock: @Sendable () -> UInt64 = MonotonicClock.nanoseconds
    /// From 0 to below 1, for what is spread in time.
    package var random: @Sendable () -> Double = { .random(in: 0..<1) }

    package init() {}
}

/// Fills each gap once. Holds the resources in use, by key, and the state that all loops share.
package final class CacheFiller: Sendable {
    package let store: CacheStore
    let settings: FillSettings
    package let policy: Current<ProxyPolicy>
    /// The current time in seconds since 1970, for the age of responses.
    package let now: @Sendable () -> Int64
    /// The monotonic clock in nanoseconds.
    package var instant: UInt64 { settings.clock() }
    package let backoff: OriginBackoff
    /// Where the media behind pages is.
    package let locations: MediaLocations
    /// Errors, redirects and other responses that are not media.
    package let shortResponses: ShortResponses
    package let cookies = CookieJars()
    package let metrics: ProxyMetrics
    package let logger: Logger
    let balance = FetchBalance()
    let promises = FillPromises()
    private let resources: Mutex<ResourceTable>
    private let lingering = Atomic<Int>(0)

    /// - Parameters:
    ///   - capacity: how many resources to keep open; each holds a file descriptor.
    ///   - now: the current time in seconds since 1970.
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
        let aliases = AliasFile(directory: store.configuration.directory, logger: logger)
        // Before the policy is locked: what is logged is compared with its rules.
        let known = aliases.read()
        policy.change { $0.aliases = known }
        locations = MediaLocations(metrics: metrics, logger: logger, now: now) { name, page in
            var isNews = false
            policy.change { isNews = $0.learn(name, ofMediaAt: page) }
            if isNews { aliases.write { policy.value.aliases } }
        }
        shortResponses = ShortResponses(limit: Int(settings.shortResponseBytes))
        self.metrics = metrics
        self.logger = logger
        resources = Mutex(ResourceTable(capacity: capacity))
        store.listeners.whenChanged { [weak self] key, generation in
            let resource = self?.resources.withLock { $0.byKey[key] }
            resource?.lookAgain(after: generation)
        }
        store.listeners.whenChangedByHand { [weak self] keys in self?.noteChange(of: keys) }
        // The closed resources release their files here, outside the lock.
        store.listeners.whenShortOfFiles { [weak self] in _ = self?.resources.withLock { $0.closeHalf() } }
        store.listeners.whenShortOfRoom { [weak self] in
            for resource in self?.resources.withLock({ Array($0.byKey.values) }) ?? [] { resource.leaveSuccession() }
        }
    }

    /// The widest read-ahead window that any rule gets: with a wider one, a small cache would evict what it has just
    /// fetched.
    var readAhead: Int64 { store.ledger.fairShare }

    /// In bytes. A longer resource is not filled beyond what is read: it would push out everything else.
    var largestFilled: Int64 { store.ledger.limit / 2 }

    /// Asks whether a transfer may linger. Each lingering transfer keeps one extent, the one that it writes, from being
    /// evicted; together they may hold only a small part of the cache.
    /// - Returns: true if it may; then the caller must call `endLinger`.
    func beginLinger(_ geometry: ChunkGeometry) -> Bool {
        guard lingering.add(1, ordering: .relaxed).newValue > store.ledger.fairShare / geometry.extentSize else {
            return true
        }
        endLinger()
        return false
    }

    func endLinger() { lingering.subtract(1, ordering: .relaxed) }

    /// Whether any fetch delivers bytes that a reader needs soon, stored or passed through.
    var isBeingRead: Bool {
        // Few are fetched, and the table is not held meanwhile.
        resources.withLock { $0.byKey.values.filter(\.mayBeFetched) }.contains(where: \.isBeingRead)
    }

    /// A rate that downloads with this filler share.
    package func downloadLine() -> DownloadLine {
        DownloadLine(nanoseconds: settings.clock) { [self] in isBeingRead }
    }

    package func resource(_ key: CacheKey) -> OpenResource {
        var (resource, closed) = resources.withLock { $0.resource(key) }
        guard !closed.isEmpty else { return resource }
        // The closed resources release their files outside the lock.
        closed = []
        store.closeLetGo()
        return resource
    }

    /// Looks a resource up, in the index if necessary.
    /// - Parameter wake: called once when the index has answered, from any thread, perhaps before this method returns.
    ///   Called only if the result is `lookingUp`.
    package func look(at resource: OpenResource, wake: @autoclosure () -> @Sendable () -> Void) -> OpenResource.View {
        var view = resource.view()
        while view == nil {
            guard store.certainlyLacks(resource.key) else {
                resource.whenLookedUp(wake())
                lookUp(resource)
                return .lookingUp
            }
            view = resource.viewOfUnknown()
        }
        if case .lookingUp = view { resource.whenLookedUp(wake()) }
        return view ?? .lookingUp
    }

    private func lookUp(_ resource: OpenResource) {
        store.load(resource.key) { [self] result in
            switch result {
            case .success(let generation): resource.lookedUp(.some(generation))
            case .failure(let error):
                // Playback continues without the cached bytes.
                store.reportDisk("look up a resource", error)
                resource.lookedUp(nil)
            }
        }
    }

    /// Whether a range, or all, of an open resource is cached. Never reads the index: false if only the index could
    /// tell.
    package func isPresent(_ key: CacheKey, _ range: Range<Int64>?) -> Bool {
        guard let generation = resources.withLock({ $0.byKey[key] })?.current, let length = generation.length else {
            return false
        }
        let whole = 0..<max(0, length) // no trap: not below 0
        return generation.coverage(of: range?.clamped(to: whole) ?? whole) == .whole
    }

    package var openCount: Int { resources.withLock { $0.byKey.count } }

    /// A person has stored or removed resources, with their variants. What is open is looked through once.
    /// - Parameter keys: nil for all.
    private func noteChange(of keys: Set<CacheKey>?) {
        let changed = resources.withLock { table in
            table.byKey.values.filter { resource in keys.map { $0.contains(resource.key.withoutVariant) } ?? true }
        }
        for resource in changed { resource.noteChange() }
        if let keys { shortResponses.removeAll(of: keys) } else { shortResponses.removeAll() }
    }

    var openKeys: [CacheKey] { resources.withLock { Array($0.byKey.keys) } }

    /// Closes all resources, once no loop runs any more. Readers keep theirs.
    package func closeAll() {
        balance.clear()
        _ = resources.withLock { $0.closeAll() }
    }
}
