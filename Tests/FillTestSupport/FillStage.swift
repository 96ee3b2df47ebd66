import Activity
import CacheFill
import CachePolicy
import DiskCache
import EventIO
import Glibc
import HTTPModel
import Logging
import TestSupport
import Upstream

/// An origin, an empty cache, and one loop that fills it: where filling takes place without a proxy and its players.
package final class FillStage: Sendable {
    package let origin: ScriptedOrigin
    package let store: CacheStore
    package let filler: CacheFiller
    private let loop: EventLoop
    private let loopFiller: LoopBound<LoopFiller>
    package let directory: TemporaryDirectory

    private init() throws {
        origin = try ScriptedOrigin()
        directory = try TemporaryDirectory()
        var configuration = StoreConfiguration(directory: directory.path)
        configuration.minFree = 0
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        store = try CacheStore(configuration, metrics: ProxyMetrics(), logger: logger)
        var settings = FillSettings()
        settings.retry = RetryPolicy(maxAttempts: 2, base: 0.01, ceiling: 0.05)
        filler = CacheFiller(
            store: store, settings: settings, policy: Current(ProxyPolicy()), capacity: 64, metrics: ProxyMetrics(),
            logger: logger
        ) { 0 }
        loop = try EventLoop()
        try loop.start()
        let addresses = Current<AddressPolicy>(try AddressPolicy(allow: ["127.0.0.1"]))
        loopFiller = loop.sync { [filler, loop] in
            let client = UpstreamClient(loop: loop, policy: addresses)
            return LoopBound(LoopFiller(filler, upstream: client, loop: loop), on: loop)
        }
    }

    /// Sets one up, and clears it away whatever happens on it.
    package static func with(_ body: (FillStage) throws -> Void) throws {
        let stage = try FillStage()
        defer { stage.end() }
        try body(stage)
    }

    private func end() {
        origin.stop()
        onLoop { $0.shutdown() }
        store.endThreads()
        loop.stop()
        filler.closeAll()
        // What a test is about has shown by now.
        try? store.close()
    }

    @discardableResult
    package func onLoop<Value: Sendable>(_ body: @escaping @Sendable (LoopFiller) -> Value) -> Value {
        loop.sync { [loopFiller] in body(loopFiller.value) }
    }

    package func url(_ path: String) throws -> OriginURL { try OriginURL(url: origin.url(path)) }

    /// Runs a prefetch to its end.
    package func prefetch(_ order: Prefetch.Order) throws -> (end: Prefetch.End, progress: PrefetchState.Progress) {
        let ended = Monitor<Prefetch.End?>(nil)
        let state = onLoop { filler in
            let prefetch = Prefetch(order, pace: nil, on: filler) { end in ended.update { $0 = end } }
            prefetch.start()
            return prefetch.state
        }
        let end = try ended.wait(for: "the end of a prefetch") { $0 }
        return (end, state.progress)
    }

    /// What is cached of a resource; nil where it is not known.
    package func generation(_ path: String) throws -> Generation? {
        let resource = filler.resource(try url(path).cacheKey)
        if case .generation(let generation) = filler.look(at: resource, wake: {}) { return generation }
        return nil
    }

    /// Waits until the index has said that nothing is cached of a resource.
    package func waitUntilUnknown(_ path: String) throws {
        let resource = filler.resource(try url(path).cacheKey)
        try wait(for: "the look-up of \(path)") {
            if case .unknown = filler.look(at: resource, wake: {}) { true } else { false }
        }
    }

    /// Waits until a range of a resource is in the cache.
    package func wait(for path: String, _ range: Range<Int64>) throws {
        try wait(for: "\(range) of \(path)") { try generation(path)?.coverage(of: range) == .whole }
    }

    /// Waits for what nobody tells of.
    package func wait(for what: String, until isThere: () throws -> Bool) throws {
        try eventually(what, isSo: isThere)
    }
}

extension Prefetch.End {
    package var isCompleted: Bool { if case .completed = self { true } else { false } }
}
