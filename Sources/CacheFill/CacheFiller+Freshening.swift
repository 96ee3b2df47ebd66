import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Upstream

/// Applies what an origin says about stored responses without sending them again.
extension CacheFiller {
    /// Updates a generation that still holds from its origin's answer (RFC 9111 §3.2).
    ///
    /// What confirms it to one user's credentials does not confirm it to others in a shared cache, unless the origin
    /// allows that (RFC 9111 §3.5): then it stays as old as it was.
    /// - Parameters:
    ///   - demand: of the request that was answered.
    ///   - requestedAt: seconds since 1970.
    func freshen(_ generation: Generation, by head: UpstreamHead, _ demand: Demand, requestedAt: Int64) {
        let receivedAt = now(), terms = demand.resolvedRule.terms
        let times = ResponseTimes(head.fields, requestedAt: requestedAt, receivedAt: receivedAt)
        let fields = head.keptFields(receivedAt: receivedAt)
        if demand.isAuthorized, terms.kind == .shared {
            let directives = ResponseDirectives(Freshening.updated(generation.head.fields, with: fields), terms)
            guard directives.sharesWhatAuthorizationOpened else { return }
        }
        let instant = settings.clock()
        generation.freshen {
            $0.freshened(by: fields, isPublic: head.isFromPublicAddress, terms, times: times, instant: instant)
        }
    }

    /// Judges a stored generation by the answer to a client's HEAD (RFC 9111 §4.3.5).
    /// - Parameter requestedAt: seconds since 1970.
    /// - Returns: whether it still holds. If not, it must be revalidated before it is served again.
    package func judge(
        _ generation: Generation, byHead head: UpstreamHead, _ demand: Demand, requestedAt: Int64
    ) -> Bool {
        let stored = generation.head, holds = confirms(head, generation)
        if holds {
            freshen(generation, by: head, demand, requestedAt: requestedAt)
        } else {
            generation.freshen { $0 === stored ? stored.doubted : $0 }
        }
        return holds
    }

    /// Whether the answer to a HEAD is of the stored version.
    func confirms(_ head: UpstreamHead, _ generation: Generation) -> Bool {
        let stored = generation.head.fields
        return switch head.status {
        case 304: Freshening.isAbout(head.fields, stored: stored)
        case 200:
            Freshening.isSameVersion(
                head.fields, length: head.contentLength, stored: stored, storedLength: generation.length)
        default: false
        }
    }

    /// Whether an answer is of an earlier time than what is stored.
    /// - Parameter requestedAt: seconds since 1970.
    func isOlder(_ head: UpstreamHead, than generation: Generation, requestedAt: Int64) -> Bool {
        let stored = generation.head, time = now()
        // What is in doubt has no age; its Date says what it had.
        let former =
            stored.times.initialAge < .max
            ? stored.times : ResponseTimes(stored.fields, requestedAt: time, receivedAt: time)
        return ResponseTimes(head.fields, requestedAt: requestedAt, receivedAt: time).bornAt < former.bornAt
    }

    /// Has a presentation's playlist validated, as a part was refused: what lets in may come with it, and be over.
    func doubt(_ whole: CacheKey) { resource(whole).current?.freshen { $0.doubted } }

    /// Drops a generation that the origin no longer has.
    package func discard(_ generation: Generation, of resource: OpenResource) {
        resource.invalidate(generation)
        store.retire(generation)
    }

    /// Whether a new version may be stored beside the one that is kept, as far as that is known without waiting.
    func hasRoom(beside length: Int64?) -> Bool {
        guard let length else { return true }
        return length <= store.ledger.attainable(beside: metrics.pinnedBytes.value ?? 0)
    }

    /// Has a new version take the place of the one that is kept, if it is whole.
    /// - Returns: whether it has.
    @discardableResult
    package func succeed(_ generation: Generation, in resource: OpenResource) -> Bool {
        guard generation.isHidden, generation.isComplete, generation.length != 0, resource.has(generation),
            store.reveal(generation)
        else { return false }
        resource.noteSuccession(of: generation, nil)
        return true
    }

    /// Drops a version that its origin does not confirm, and that is to replace one that is kept, unless somebody reads
    /// it: whoever looks again finds the former.
    /// - Returns: whether it has.
    package func returnsToFormer(of generation: Generation, in resource: OpenResource) -> Bool {
        guard generation.isHidden, !generation.isInUse else { return false }
        discard(generation, of: resource)
        return true
    }

    /// A fetch of a new version has ended, which takes the place of the one that is kept if it is whole.
    ///
    /// A presentation is whole as little with its new playlist as with one new segment: without the others, nothing of
    /// it would play. It stays as it is until it is removed; the new parts are used while their origin is there. What a
    /// rule pins is renewed as it is played.
    func endSuccession(of generation: Generation, in resource: OpenResource, _ demand: Demand, _ end: FetchEnd) {
        let isAlone = generation.whole == nil && !generation.head.isCertainListing && !StrayPage.isPlaylist(demand.url)
        if isAlone || demand.resolvedRule.pins, succeed(generation, in: resource) { return }
        switch end {
        case .failed: resource.noteSuccession(of: generation, .failed)
        case .completed: resource.noteSuccession(of: generation, .running)
        case .stopped: break
        }
    }
}

extension LoopFiller {
    /// Revalidates a generation while it is being served (RFC 5861 §3). If the origin has another version, the next
    /// request gets that.
    package func revalidate(_ generation: Generation, _ resource: OpenResource, _ demand: Demand) {
        let follower = FollowerID()
        let first = ByteRangeSpec.bounded(first: 0, last: generation.geometry.chunkSize - 1)
        let opened = open(resource, demand.of(first), validating: generation, follower: follower, alone: false)
        guard let (status, _) = opened else { return }
        leave(status, follower)
    }

    /// Leaves a fetch once it has found something or ended; an interim response is neither.
    private func leave(_ status: SharedFetch, _ follower: FollowerID) {
        let bound = LoopBound(self, on: loop)
        if status.wait(follower, at: nil, wake: { bound.post { $0.leave(status, follower) } }) { return }
        status.leave(follower)
    }
}
