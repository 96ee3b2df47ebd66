import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import Playlists
import Synchronization

/// Fetches the next segments of what somebody plays, before they are asked for: `Playheads` says which, a `Prefetch`
/// brings each. From any thread; each fetch is on the loop of the request for which it is made.
///
///     the player reads     n
///     is fetched           n  n+1  n+2  n+3      one after the other, and each joined by the player that comes for it
package final class SegmentAhead: Sendable {
    /// What is needed to ask as the player would.
    private struct Asker: Sendable {
        let demand: Demand
        let whole: CacheKey
        let filler: LoopBound<LoopFiller>
    }

    /// Lock order: this before the shelf's. Nothing else is called under it.
    private struct State {
        var heads = Playheads<Asker>()
        var prefetches: [Playheads<Asker>.RunID: LoopBound<Prefetch>] = [:]
    }

    private let shelf: PlaylistShelf
    private let nanoseconds: @Sendable () -> UInt64
    private let state = Mutex(State())

    /// - Parameter nanoseconds: a clock that never goes back.
    package init(
        _ shelf: PlaylistShelf, nanoseconds: @escaping @Sendable () -> UInt64 = MonotonicClock.nanoseconds
    ) {
        (self.shelf, self.nanoseconds) = (shelf, nanoseconds)
    }

    /// A player asks for a segment with GET. Before or after its own answer has begun: what is fetched is begun when
    /// the loop's present callback has returned.
    /// - Parameters:
    ///   - membership: what the shelf says of the request.
    ///   - demand: the request's own.
    ///   - filler: of the loop that this is called on.
    /// - Returns: what to tell if the player leaves; nil where nothing is fetched for it.
    package func reads(
        _ membership: Membership, by player: PlayerID, _ demand: Demand, on filler: LoopFiller
    ) -> Reading? {
        guard let place = membership.place, demand.mayLookAhead else { return nil }
        learnIndex(of: place, demand, filler)
        let asker = Asker(
            demand: demand, whole: membership.whole, filler: LoopBound(filler, on: filler.loop))
        let now = nanoseconds(), ahead = demand.resolvedRule.aheadSegments
        let (reading, actions) = state.withLock { state in
            state.heads.read(place, by: player, asker, ahead: ahead, at: now) { shelf.role(of: place.rendition) }
        }
        act(on: actions, filler)
        return reading
    }

    /// The player has left before its answer was out. Not to be called for an answer that has come to its end.
    package func left(_ reading: Reading) { act(on: state.withLock { $0.heads.left(reading) }) }

    /// A newer version of a playlist is on the shelf: what plays goes on to its new edge.
    /// - Parameter now: since 1970.
    package func renewed(_ playlist: CacheKey, at now: Duration) {
        act(
            on: state.withLock { state in
                state.heads.renewed(playlist) { shelf.segments(of: $0, at: now) }
            })
    }

    /// Stops everything, and lets go of the loops.
    package func stop() { act(on: state.withLock { $0.heads.forgetAll() }) }

    /// How many fetches are running, or about to be.
    package var runningCount: Int { state.withLock { $0.heads.runningCount } }

    // MARK: What is fetched

    /// - Parameter filler: of the loop that this is called on, where it is one: what is there needs no fetch.
    private func act(on actions: [Playheads<Asker>.Action], _ filler: LoopFiller? = nil) {
        for action in actions {
            switch action {
            case .start(let run, let piece, _) where filler.map { $0.filler.isThere(piece) } ?? false:
                ended(run, isThere: true, filler)
            case .start(let run, let piece, let asker): asker.filler.post { self.start(run, piece, asker, $0) }
            case .stop(let run):
                let prefetch = state.withLock { $0.prefetches.removeValue(forKey: run) }
                prefetch?.post { $0.stop() }
            }
        }
    }

    private func start(
        _ run: Playheads<Asker>.RunID, _ piece: AheadPiece, _ asker: Asker, _ filler: LoopFiller
    ) {
        guard state.withLock({ $0.heads.isRunning(run) }) else { return }
        guard filler.filler.mayLookAhead(at: piece.url) else { return ended(run, isThere: false) }
        let order = Prefetch.Order(
            url: piece.url, after: asker.demand, range: piece.range, whole: asker.whole, keeps: false)
        let prefetch = Prefetch(order, pace: nil, on: filler) { [self] end in
            if case .completed = end { ended(run, isThere: true) } else { ended(run, isThere: false) }
        }
        // From here on it goes on by itself: the next one is asked for while its last bytes come.
        prefetch.onNearEnd = { [self] in ended(run, isThere: true) }
        let bound = LoopBound(prefetch, on: filler.loop)
        let isWanted = state.withLock { state in
            guard state.heads.isRunning(run) else { return false }
            state.prefetches[run] = bound
            return true
        }
        if isWanted { prefetch.start() } else { prefetch.stop() }
    }

    private func ended(_ run: Playheads<Asker>.RunID, isThere: Bool, _ filler: LoopFiller? = nil) {
        let next = state.withLock { state in
            state.prefetches[run] = nil
            return state.heads.ended(run, isThere: isThere)
        }
        act(on: next, filler)
    }

    // MARK: The index of a file

    /// Where a rendition is one file whose index nobody has looked at: that is read once the player has had it.
    private func learnIndex(of place: SegmentPlace, _ demand: Demand, _ filler: LoopFiller) {
        guard place.segments.count == 1, let (url, range) = shelf.missingIndex(of: place.rendition) else { return }
        let (shelf, store) = (shelf, filler.filler.store)
        // Since 1970.
        let now = Duration.seconds(filler.filler.now())
        StoredRange.read(range, of: url, demand, on: filler) { bytes in
            // Not on the loop: there may be many.
            store.perform {
                shelf.learn(try? SegmentIndexBox(bytes, at: range.lowerBound), of: place.rendition, at: now)
            }
        }
    }
}

extension Demand {
    /// Whether more than what it asks for may be fetched for it.
    fileprivate var mayLookAhead: Bool {
        resolvedRule.aheadSegments > 0 && resolvedRule.mayLookAhead && !directives.control.onlyIfCached
            && !directives.control.noStore
    }
}

extension ResolvedRule {
    fileprivate var mayLookAhead: Bool { fill != .read && !isMetered && !bypasses }
}

extension CacheFiller {
    fileprivate func isThere(_ piece: AheadPiece) -> Bool {
        isPresent(policy.value.resolve(piece.url).key, piece.range)
    }

    /// Another address may have other rules, and things change while segments come.
    fileprivate func mayLookAhead(at url: OriginURL) -> Bool {
        let policy = policy.value
        // What a player may not ask for is not fetched for it.
        guard policy.servesAnyOrigin || policy.target(of: url) != nil else { return false }
        return !policy.isOffline && policy.resolve(url).resolvedRule.mayLookAhead && !backoff.isDown(url.absolute)
    }
}
