import CachePolicy
import DiskCache
import Logging
import Synchronization

extension PresentationContents {
    /// Finds the renditions of presentations that are completely cached, once for all who wait at a time: a long stream
    /// takes a while. From any thread.
    final class SharedReading: Sendable {
        typealias Answer = @Sendable (PlaylistForm.Kept?) -> Void
        typealias Reading = @Sendable (CacheKey, CacheStore, ProxyPolicy) throws(StoreError) -> PlaylistForm.Kept?

        private let read: Reading
        private let waiting = Mutex<[CacheKey: [Answer]]>([:])

        init(_ read: @escaping Reading = { try PresentationContents(of: $0, in: $1, $2)?.kept }) { self.read = read }

        /// - Parameter answer: called once, on a thread for documents, or at once if the store is being closed.
        func find(
            of whole: CacheKey, in store: CacheStore, _ policy: ProxyPolicy, _ logger: Logger,
            _ answer: @escaping Answer
        ) {
            let isFirst = waiting.withLock { waiting in
                waiting[whole, default: []].append(answer)
                return waiting[whole]?.count == 1
            }
            guard isFirst else { return }
            let isRun = store.performOnText(of: (try? OriginURL(url: whole.text))?.host ?? whole.text) { [self] in
                var kept: PlaylistForm.Kept?
                do throws(StoreError) { kept = try read(whole, store, policy) } catch {
                    logger.error("could not read what is cached of \(whole.text): \(error)")
                }
                end(whole, kept)
            }
            if !isRun { end(whole, nil) }
        }

        private func end(_ whole: CacheKey, _ kept: PlaylistForm.Kept?) {
            for answer in waiting.withLock({ $0.removeValue(forKey: whole) }) ?? [] { answer(kept) }
        }
    }
}
