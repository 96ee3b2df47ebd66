import Activity
import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import Playlists
import Synchronization

/// Has the next item downloaded when a player has read three quarters of one: the next episode of a podcast, the next
/// file of a list, the next number of a series. From any thread.
///
///     the feed or list names it ─────────────────────────────────▶ ordered
///     its number says what it should be called ── first bytes ── there ─▶ ordered
///                                                     └── not there: remembered for an hour
package final class NextItems: Sendable {
    /// Tells what follows an item; `.unknown` if the URL is not one of its items. Answers once, from any thread. Called on
    /// a thread that other commands wait for, so that what takes long has to answer later.
    package typealias Source =
        @Sendable (OriginURL, _ answer: @escaping @Sendable (PlaybackOrder.Next) -> Void) -> Void

    /// An answer that delivers an item to a player.
    package struct Reading: Sendable {
        fileprivate let id: ItemReadings.ID
        fileprivate let url: OriginURL
        /// The first byte of the answer.
        fileprivate let start: Int64
        fileprivate let length: Int64
        /// The offset at which the player will have read three quarters; nil if it will not with this answer.
        package let mark: Int64?
    }

    private struct State {
        var readings = ItemReadings()
        /// Items, feeds and lists that are played with their next items although the setting is off.
        var wanted: [OriginURL] = []
        /// Guessed URLs that their origins did not have, and when they were asked, in nanoseconds.
        var missing: [OriginURL: UInt64] = [:]
        var sources: [Source] = []
        var order: (@Sendable (OriginURL) -> Void)?
    }

    private let shelf: FeedShelf
    private let nanoseconds: @Sendable () -> UInt64
    private let state = Mutex(State())
    /// While nothing is wanted beside the setting, this spares requests the lock.
    private let hasWanted = Atomic<Bool>(false)

    /// The most items, feeds and lists that are wanted, and the most URLs remembered as missing.
    package static let mostWanted = 64
    private static let mostMissing = 256
    /// How long a missing URL is not requested again, in nanoseconds: an hour.
    private static let missingFor: UInt64 = 3600 * 1_000_000_000
    /// Shorter files are items only if a feed or list names them: web pages consist of many.
    package static let shortestGuessed: Int64 = 1 << 20

    /// - Parameter nanoseconds: a clock that never goes back.
    package init(_ shelf: FeedShelf, nanoseconds: @escaping @Sendable () -> UInt64 = MonotonicClock.nanoseconds) {
        (self.shelf, self.nanoseconds) = (shelf, nanoseconds)
    }

    /// Sets what carries out the orders. Without it, nothing is ordered.
    /// - Parameter order: called on a thread that may block, perhaps several times for one URL.
    package func connect(_ order: @escaping @Sendable (OriginURL) -> Void) { state.withLock { $0.order = order } }

    /// Adds a source that knows more feeds than were served recently.
    package func add(_ source: @escaping Source) { state.withLock { $0.sources.append(source) } }

    /// Orders nothing more, and releases what carries out the orders.
    package func stop() {
        let connected = state.withLock { state in
            defer { (state.order, state.sources) = (nil, []) }
            return (state.order, state.sources)
        }
        withExtendedLifetime(connected) {}
    }

    /// Wants the next item after this one, or after any item of this feed or list, whatever the setting says: for
    /// somebody who plays it. The last 64 are remembered.
    package func want(_ url: OriginURL) {
        let url = url.normalized
        state.withLock { state in
            state.wanted.removeAll { $0 == url }
            state.wanted.append(url)
            if state.wanted.count > Self.mostWanted { state.wanted.removeFirst() }
        }
        hasWanted.store(true, ordering: .releasing)
    }

    // MARK: Reading

    /// Whether anything may be fetched after any file: by its rule, or as something is played with its next items.
    package func mayFollow(_ prefetchesNext: Bool) -> Bool { prefetchesNext || hasWanted.load(ordering: .acquiring) }

    /// Whether anything may be fetched after a file.
    /// - Parameter length: of the whole file.
    package func mayFollow(_ url: OriginURL, length: Int64, _ rule: ResolvedRule) -> Bool {
        (rule.prefetchesNext || !rule.bypasses && !rule.isMetered && isWanted(url))
            && (length >= Self.shortestGuessed || shelf.contains(url))
    }

    /// Takes the beginning of an answer that delivers a file to a player, if anything may be fetched after it.
    /// - Parameters:
    ///   - key: the cache key of the file.
    ///   - offset: the first byte of the answer.
    ///   - length: the length of the whole file.
    /// - Returns: what to pass to `read` when the answer reaches its mark, and when it ends.
    package func begin(
        _ url: OriginURL, _ key: CacheKey, by player: PlayerID, at offset: Int64, length: Int64
    ) -> Reading {
        let id = ItemReadings.ID(player: player, item: key)
        let mark = state.withLock { $0.readings.begin(id, at: offset, length: length) }
        return Reading(id: id, url: url, start: offset, length: length, mark: mark)
    }

    /// Takes what an answer has delivered by now.
    /// - Parameters:
    ///   - end: the offset after the last byte.
    ///   - filler: the filler of the loop that this is called on.
    package func read(_ reading: Reading, upTo end: Int64, on filler: LoopFiller) {
        guard let range = Range(from: reading.start, upTo: end) else { return }
        let isRead = state.withLock { $0.readings.read(range, of: reading.id, length: reading.length) }
        if isRead { follow(reading, on: filler) }
    }

    private func isWanted(_ url: OriginURL) -> Bool {
        guard hasWanted.load(ordering: .acquiring) else { return false }
        let wanted = state.withLock { $0.wanted }
        return wanted.contains(url.normalized)
            || shelf.documents(with: url).contains { wanted.contains($0.url.normalized) }
    }

    // MARK: Ordering

    private func follow(_ reading: Reading, on filler: LoopFiller) {
        let bound = LoopBound(filler, on: filler.loop), cache = filler.filler
        cache.store.perform { [self] in
            let sources = state.withLock { $0.sources }
            request(sources[...], after: reading.url, known: shelf.next(after: reading.url)) { [self] next in
                switch next {
                case .item(let next): cache.store.perform { self.order(next, cache) }
                case .nothing: break
                case .unknown:
                    guard reading.length >= Self.shortestGuessed, let guess = SeriesName.next(after: reading.url)
                    else { return }
                    bound.post { self.look(for: guess, on: $0) }
                }
            }
        }
    }

    /// Asks one source after the other. A feed that has something after the item decides, also if the item is the last
    /// one of another.
    /// - Parameter known: what is known by now.
    private func request(
        _ sources: ArraySlice<Source>, after url: OriginURL, known: PlaybackOrder.Next,
        then end: @escaping @Sendable (PlaybackOrder.Next) -> Void
    ) {
        if case .item = known { return end(known) }
        guard let source = sources.first else { return end(known) }
        source(url) { [self] answer in
            request(sources.dropFirst(), after: url, known: answer == .unknown ? known : answer, then: end)
        }
    }

    /// Requests the beginning of a file whose URL is a guess, and orders the rest if there is one.
    private func look(for guess: OriginURL, on filler: LoopFiller) {
        guard isWorthRequesting(guess), filler.filler.mayFetchNext(guess) else { return }
        let (cache, store) = (filler.filler, filler.filler.store)
        let prefetch = Prefetch(Prefetch.Order(url: guess, range: 0..<1, keeps: false), pace: nil, on: filler) {
            [self] end in
            switch end {
            case .completed: store.perform { [self] in order(guess, cache) }
            case .failed: miss(guess)
            }
        }
        prefetch.start()
    }

    private func isWorthRequesting(_ url: OriginURL) -> Bool {
        let now = nanoseconds()
        return state.withLock { $0.missing[url].map { now -| $0 >= Self.missingFor } ?? true }
    }

    private func miss(_ url: OriginURL) {
        let now = nanoseconds()
        state.withLock { state in
            if state.missing.count >= Self.mostMissing {
                state.missing = state.missing.filter { now -| $0.value < Self.missingFor }
                if state.missing.count >= Self.mostMissing { state.missing = [:] }
            }
            state.missing[url] = now
        }
    }

    /// May block.
    private func order(_ url: OriginURL, _ cache: CacheFiller) {
        guard cache.mayFetchNext(url), let order = state.withLock({ $0.order }) else { return }
        order(url)
    }
}

extension CacheFiller {
    /// Whether the next item may be fetched: another URL may have other rules than the one that was played.
    fileprivate func mayFetchNext(_ url: OriginURL) -> Bool {
        let policy = policy.value
        // A URL that the player may not request is not fetched for it.
        guard policy.servesAnyOrigin || policy.target(of: url) != nil else { return false }
        let rule = policy.resolve(url).resolvedRule
        return !policy.isOffline && !rule.bypasses && !rule.isMetered
            && !backoff.isDown(url.absolute, beside: rule.parents)
    }
}
