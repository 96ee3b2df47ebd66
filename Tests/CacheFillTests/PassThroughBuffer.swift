import Activity
import CachePolicy
import DiskCache
import HTTPModel
import Logging
import TestSupport
import Testing

/// A generation to play with.
final class PassThroughBuffer {
    let generation: Generation
    private let store: CacheStore
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = StoreConfiguration(directory: directory.path)
        configuration.minFree = 0
        store = try CacheStore(
            configuration, metrics: ProxyMetrics(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let head = GenerationHead(status: 200, fields: HeaderFields(), finalURL: "https://example.com/a", storedAt: 0)
        generation = store.makeBuffer(CacheKey(text: "https://example.com/a"), head: head, length: 10)
    }

    /// One in a file.
    func makeStored() throws -> Generation {
        try store.makeGeneration(generation.key, head: generation.head, length: 10)
    }

    func retire(_ generation: Generation) { store.retire(generation) }

    deinit {
        do { try store.close() } catch { Issue.record(error) }
    }
}
