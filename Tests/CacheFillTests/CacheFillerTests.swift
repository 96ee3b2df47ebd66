import Activity
import CachePolicy
import DiskCache
import EventIO
import Glibc
import HTTPModel
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CacheFill

/// What is known of a resource when it is first asked for.
@Suite struct CacheFillerTests {
    private let directory: TemporaryDirectory
    private let store: CacheStore
    private let filler: CacheFiller
    private let wakes = Monitor(0)

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = StoreConfiguration(directory: directory.path)
        configuration.minFree = 0
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        store = try CacheStore(configuration, metrics: ProxyMetrics(), logger: logger)
        filler = CacheFiller(
            store: store, settings: FillSettings(), policy: Current(ProxyPolicy()), capacity: 64,
            metrics: ProxyMetrics(), logger: logger
        ) { 0 }
    }

    private static func key(_ name: String) -> CacheKey { CacheKey(text: "https://example.com/\(name)") }

    private func look(_ name: String) -> OpenResource.View {
        let wakes = wakes
        return filler.look(at: filler.resource(Self.key(name)), wake: { wakes.update { $0 += 1 } })
    }

    private func isUnknown(_ name: String) -> Bool { if case .unknown = look(name) { true } else { false } }

    private func isLookedUp(_ name: String) -> Bool { if case .lookingUp = look(name) { true } else { false } }

    /// The first look-up in vain has the filter filled; from then on nobody waits.
    @Test func whatIsCertainlyNotCachedIsUnknownAtOnce() throws {
        #expect(isLookedUp("a"))
        #expect(try wakes.wait(for: "the look-up") { $0 > 0 ? $0 : nil } == 1)
        #expect(isUnknown("a"))
        try waitForFilter()
        #expect(isUnknown("b"))
        #expect(wakes.update { $0 } == 1)
        try store.close()
    }

    @Test func whatIsCachedIsLookedUpAndFound() throws {
        #expect(isLookedUp("none"))
        try waitForFilter()
        let head = GenerationHead(status: 200, fields: HeaderFields(), finalURL: "https://example.com/a", storedAt: 0)
        let generation = try store.makeGeneration(Self.key("a"), head: head, length: 10)
        // Not known to the index yet, but to the store.
        #expect(isLookedUp("a"))
        _ = try wakes.wait(for: "the look-up") { $0 == 2 ? $0 : nil }
        guard case .generation(let found) = look("a") else { return #expect(Bool(false), "it is not found") }
        #expect(found === generation)
        try store.close()
    }

    private func waitForFilter() throws {
        try eventually("a filter that is filled") { store.certainlyLacks(Self.key("nothing")) }
    }
}
