import Activity
import CachePolicy
@preconcurrency import Dispatch
import EventIO
import HTTPModel
import Logging
import Synchronization

/// Finds the media behind pages, for all loops: each URL once however many requests wait for it, and at most four at a
/// time. The threads that run the commands start when they are needed, and end when they have no work.
package final class MediaLocations: Sendable {
    /// Runs a resolver. Blocks; ends early once the second closure returns true.
    package typealias Run =
        @Sendable (Resolver, OriginURL, @Sendable () -> Bool) -> Result<MediaLocation, ResolverFailure>

    private let table = Mutex(LocationTable())
    private let isClosing = Atomic<Bool>(false)
    /// The threads that run.
    private let threads = DispatchGroup()
    private let now: @Sendable () -> Int64
    private let run: Run
    private let named: @Sendable (String, OriginURL) -> Void
    private let metrics: ProxyMetrics
    private let logger: Logger

    /// - Parameters:
    ///   - now: the current time in seconds since 1970.
    ///   - named: called with the name that a resolver gave to a page's media, on another thread, before the location is
    ///     used.
    ///   - run: nil to run the program itself.
    package init(
        metrics: ProxyMetrics, logger: Logger, now: @escaping @Sendable () -> Int64,
        named: @escaping @Sendable (String, OriginURL) -> Void = { _, _ in }, run: Run? = nil
    ) {
        (self.metrics, self.logger, self.now, self.named) = (metrics, logger, now, named)
        self.run =
            run ?? { resolver, url, isCancelled in
                Result { () throws(ResolverFailure) in
                    try ResolverCommand.run(resolver, for: url, now: now, isCancelled: isCancelled)
                }
            }
    }

    // MARK: Finding

    /// Finds where the media of a URL is.
    /// - Parameter waiter: called once, from another thread, if the result is `waiting`.
    package func find(
        _ url: OriginURL, by resolver: Resolver,
        waiter: @escaping @Sendable (Result<LocatedMedia, ResolverFailure>) -> Void
    ) -> KnownLocation {
        let (now, name) = (now(), LocationTable.Name(url: url, command: resolver.command))
        let (known, startsThread) = table.withLock { $0.find(name, by: resolver, at: now, waiter: waiter) }
        if startsThread { startThread() }
        return known
    }

    /// The location that stands for a URL whose link has expired; nil if there is none.
    package func substitute(for url: OriginURL) -> LocatedMedia? {
        let now = now()
        return table.withLock { $0.known(Self.name(ofSubstituteFor: url), at: now) }
    }

    /// Lets a location stand for a URL whose link has expired.
    package func substitute(_ location: MediaLocation, for url: OriginURL) -> LocatedMedia {
        metrics.refreshedLinks.add()
        let now = now()
        return table.withLock { $0.substitute(location, for: Self.name(ofSubstituteFor: url), at: now) }
    }

    private static func name(ofSubstituteFor url: OriginURL) -> LocationTable.Name { .init(url: url, command: []) }

    /// An origin has answered at the location.
    package func worked(_ media: LocatedMedia, for url: OriginURL, by resolver: Resolver?) {
        table.withLock { $0.worked(media, .init(url: url, command: resolver?.command ?? [])) }
    }

    /// An origin has refused the location with a status that may mean that it has expired.
    /// - Returns: whether to find the media again now. If not, that fails for a while.
    package func refused(_ media: LocatedMedia, for url: OriginURL, by resolver: Resolver?, status: Int) -> Bool {
        let now = now()
        let name = LocationTable.Name(url: url, command: resolver?.command ?? [])
        let isWorthwhile = table.withLock {
            $0.refused(media, name, status: status, by: resolver?.name.printable ?? "", at: now)
        }
        if isWorthwhile, resolver != nil { metrics.refreshedLinks.add() }
        return isWorthwhile
    }

    // MARK: Threads

    private func startThread() {
        threads.enter()
        let status = DetachedThread.start("resolve") { self.work() }
        guard status != 0 else { return }
        threads.leave()
        // All who wait fail; they may try again.
        while let search = table.withLock({ $0.take() }) {
            finish(search, .failure(.cannotStart(search.resolver.name.printable, reason: String(errno: status))))
        }
    }

    /// Runs until the queue is empty.
    private func work() {
        while let search = table.withLock({ $0.take() }) {
            metrics.resolverRuns.add()
            finish(search, run(search.resolver, search.name.url) { self.isClosing.load(ordering: .acquiring) })
        }
        threads.leave()
    }

    private func finish(_ search: LocationTable.Search, _ result: Result<MediaLocation, ResolverFailure>) {
        let about: Logger.Metadata = ["url": "\(search.name.url.absolute)"]
        switch result {
        case .success(let location):
            logger.debug("located the media at \(location.url.absolute)", metadata: about)
            if let key = location.key { named(key, search.name.url) }
        case .failure(.closing): break
        case .failure(let failure): logger.warning("not located: \(failure)", metadata: about)
        }
        let now = now()
        let (waiters, outcome) = table.withLock { $0.finished(search.name, result, at: now) }
        for waiter in waiters { waiter(outcome) }
    }

    /// Ends all commands, and waits until they have ended. What waits for them fails.
    package func close() {
        isClosing.store(true, ordering: .releasing)
        for waiter in table.withLock({ $0.close() }) { waiter(.failure(.closing)) }
        // A command notices within milliseconds, and ends within half a second.
        threads.wait()
    }
}
