import Activity
import CacheFill
import CachePolicy
import EventIO
import HTTPModel
import Playlists
import Synchronization

/// Fetches the next segments of a stream being played before they are requested: `Playheads` decides which, and a
/// `Prefetch` fetches each. From any thread; each fetch runs on the loop of the request for which it is made.
///
///     the player reads     n
///     is fetched           n  n+1  n+2  n+3      one after the other; the player joins each when it requests it
package final class SegmentAhead: Sendable {
    /// What is needed to send the same kind of request as the player.
    private struct Requester: Sendable {
        let demand: Demand
        let whole: CacheKey
        let filler: LoopBound<LoopFiller>
    }

    /// Lock order: this before the shelf's. Nothing else is called under this lock.
    private struct State {
        var heads = Playheads<Requester>()
        var prefetches: [Playheads<Requester>.RunID: LoopBound<Prefetch>] = [:]
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

    /// Takes a player's GET of a segment. Called before or after its own answer has begun: fetches start when the
    /// loop's current callback has returned.
    /// - Parameters:
    ///   - membership: the membership that the shelf found for the request.
    ///   - demand: the demand of the request.
    ///   - filler: the filler of the loop that this is called on.
    /// - Returns: the reading to pass to `left` if the player leaves; nil if nothing is fetched for it.
    package func reads(
        _ membership: Membership, by player: PlayerID, _ demand: Demand, on filler: LoopFiller
    ) -> Reading? {
        guard let place = membership.place, demand.mayLookAhead else { return nil }
        learnIndex(of: place, demand, filler)
        let requester = Requester(
            demand: demand, whole: membership.whole, filler: LoopBound(filler, on: filler.loop))
        let now = nanoseconds(), ahead = demand.resolvedRule.aheadSegments
        let (reading, actions) = state.withLock { state in
            state.heads.read(place, by: player, requester, ahead: ahead, at: now) { shelf.role(of: place.rendition) }
        }
        act(on: actions, filler)
        return reading
    }

    /// Takes the departure of a player before its whole answer was sent. Must not be called for an answer that
    /// reached its end.
    package func left(_ reading: Reading) { act(on: state.withLock { $0.heads.left(reading) }) }

    /// Takes a newer version of a playlist from the shelf: fetching continues to the new edge of what is played.
    /// - Parameter now: the time since 1970.
    package func renewed(_ playlist: CacheKey, at now: Duration) {
        act(
            on: state.withLock { state in
                state.heads.renewed(playlist) { shelf.segments(of: $0, at: now) }
            })
    }

    /// Stops everything, and releases the loops.
    package func stop() { act(on: state.withLock { $0.heads.forgetAll() }) }

    /// How many fetches are running, or about to be.
    package var runningCount: Int { state.withLock { $0.heads.runningCount } }

    // MARK: Fetching

    /// - Parameter filler: the filler of the loop that this is called on, if it is a loop: pieces that are cached
    ///   need no fetch.
    private func act(on actions: [Playheads<Requester>.Action], _ filler: LoopFiller? = nil) {
        for action in actions {
            switch action {
            case .start(let run, let piece, _) where filler.map { $0.filler.isThere(piece) } ?? false:
                ended(run, isThere: true, filler)
            case .start(let run, let piece, let requester):
                requester.filler.post { self.start(run, piece, requester, $0) }
            case .stop(let run):
                let prefetch = state.withLock { $0.prefetches.removeValue(forKey: run) }
                prefetch?.post { $0.stop() }
            }
        }
    }

    private func start(
        _ run: Playheads<Requester>.RunID, _ piece: AheadPiece, _ requester: Requester, _ filler: LoopFiller
    ) {
        guard state.withLock({ $0.heads.isRunning(run) }) else { return }
        guard filler.filler.mayLookAhead(at: piece.url) else { return ended(run, isThere: false) }
        let order = Prefetch.Order(
            url: piece.url, after: requester.demand, range: piece.range, whole: requester.whole, keeps: false)
        let prefetch = Prefetch(order, pace: nil, on: filler) { [self] end in
            if case .completed = end { ended(run, isThere: true) } else { ended(run, isThere: false) }
        }
        // From here on, it continues on its own: the next one is requested while its last bytes arrive.
        prefetch.onNearEnd = { [self] in ended(run, isThere: true) }
        let bound = LoopBound(prefetch, on: filler.loop)
        let isWanted = state.withLock { state in
            guard state.heads.isRunning(run) else { return false }
            state.prefetches[run] = bound
            return true
        }
        if isWanted { prefetch.start() } else { prefetch.stop() }
    }

    private func ended(_ run: Playheads<Requester>.RunID, isThere: Bool, _ filler: LoopFiller? = nil) {
        let next = state.withLock { state in
            state.prefetches[run] = nil
            return state.heads.ended(run, isThere: isThere)
        }
        act(on: next, filler)
    }

    // MARK: The index of a file

    /// Reads the index of a rendition that is one file, once the player has fetched it.
    private func learnIndex(of place: SegmentPlace, _ demand: Demand, _ filler: LoopFiller) {
        guard place.segments.count == 1, let (url, range) = shelf.missingIndex(of: place.rendition) else { return }
        let (shelf, store) = (shelf, filler.filler.store)
        StoredRange.read(range, of: url, demand, on: filler) { bytes in
            // Not on the loop: there may be many segments.
            _ = store.performOnText(of: url.host) {
                shelf.learn(try? SegmentIndexBox(bytes, at: range.lowerBound), of: place.rendition)
            }
        }
    }
}

extension Demand {
    /// Whether more than the request may be fetched for it.
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

    /// Another URL may have other rules, and conditions change while segments arrive.
    fileprivate func mayLookAhead(at url: OriginURL) -> Bool {
        let policy = policy.value
        // A URL that the player may not request is not fetched for it.
        guard policy.servesAnyOrigin || policy.target(of: url) != nil else { return false }
        let rule = policy.resolve(url).resolvedRule
        return !policy.isOffline && rule.mayLookAhead && !backoff.isDown(url.absolute, beside: rule.parents)
    }
}
