import CachePolicy
import DiskCache
import Foundation

/// Work in the store for programs: resources by their URLs, with errors as programs know them.
extension CacheEngine {
    /// - Throws: `.closed` once the cache is being closed, otherwise `.disk`.
    func inStore<Value>(_ body: (CacheStore) throws(StoreError) -> Value) throws(CacheError) -> Value {
        guard !isClosing.value else { throw .closed }
        do throws(StoreError) {
            try store.checkOpen()
            return try body(store)
        } catch {
            // What is closed meanwhile fails in other ways.
            do throws(StoreError) { try store.checkOpen() } catch { throw .closed }
            throw CacheError(error)
        }
    }

    /// Looks a resource up under each key that it may have.
    func find<Value>(_ url: OriginURL, _ look: (CacheStore, CacheKey) throws(StoreError) -> Value?)
        throws(CacheError) -> Value?
    {
        try inStore { store throws(StoreError) in
            try policy.value.find(url) { key throws(StoreError) in try look(store, key) }
        }
    }

    /// The same on a thread for such work.
    func find<Value: Sendable>(
        _ url: OriginURL, _ look: @escaping @Sendable (CacheStore, CacheKey) throws(StoreError) -> Value?
    ) async throws -> Value? {
        let policy = policy.value
        return try await perform { store throws(StoreError) in
            try policy.find(url) { key throws(StoreError) in try look(store, key) }
        }
    }

    /// Holds a complete file, all of which it may have to verify.
    func hold(_ url: OriginURL) async throws -> FileHold.Holding? {
        let policy = policy.value
        return try await perform(isLong: true) { store throws(StoreError) in
            try policy.find(url) { key throws(StoreError) in try store.hold(key) }
        }
    }

    /// Changes a resource.
    /// - Parameter body: returns whether anything of it is cached; otherwise this throws `.notCached`.
    func change(_ url: URL, _ body: (CacheStore, CacheKey) throws(StoreError) -> Bool) throws {
        let found = try find(OriginURL(url)) { store, key throws(StoreError) in try body(store, key) ? true : nil }
        guard found != nil else { throw CacheError.notCached(url) }
    }

    /// Runs work on a thread for such work.
    /// - Parameter isLong: whether it reads whole files.
    func perform<Value: Sendable>(
        isLong: Bool = false, _ work: @escaping @Sendable (CacheStore) throws(StoreError) -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let job = { @Sendable [self] in
                continuation.resume(
                    with: Result { () throws(CacheError) in try inStore(work) }.mapError { $0 as any Error })
            }
            let runs = isLong ? store.performLong(job) : store.perform(job)
            if !runs { continuation.resume(throwing: CacheError.closed) }
        }
    }
}
