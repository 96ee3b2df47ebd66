import CachePolicy
import DiskCache
import HTTPModel
import Upstream

/// What an origin says of stored responses without sending them again.
extension CacheFiller {
    /// Takes up what an origin's answer says of a generation that still holds (RFC 9111 §3.2).
    /// - Parameter requestedAt: seconds since 1970.
    func freshen(_ generation: Generation, by head: UpstreamHead, requestedAt: Int64) {
        let receivedAt = now()
        let times = ResponseTimes(head.fields, requestedAt: requestedAt, receivedAt: receivedAt)
        let fields = head.keptFields(receivedAt: receivedAt)
        let instant = settings.clock()
        generation.freshen {
            $0.freshened(by: fields, isPublic: head.isFromPublicAddress, times: times, instant: instant)
        }
    }

    /// Judges a stored generation by the answer to a client's HEAD (RFC 9111 §4.3.5).
    /// - Parameter requestedAt: seconds since 1970.
    /// - Returns: whether it still holds. If not, its origin is asked before it is given out again.
    package func judge(_ generation: Generation, byHead head: UpstreamHead, requestedAt: Int64) -> Bool {
        let stored = generation.head
        let holds =
            head.status == 304
            ? Freshening.isAbout(head.fields, stored: stored.fields)
            : Freshening.isSameVersion(
                head.fields, length: head.contentLength, stored: stored.fields, storedLength: generation.length)
        if holds {
            freshen(generation, by: head, requestedAt: requestedAt)
        } else {
            generation.freshen { $0 === stored ? stored.doubted : $0 }
        }
        return holds
    }

    /// Its origin no longer has it.
    package func discard(_ generation: Generation, of resource: OpenResource) {
        resource.invalidate(generation)
        store.retire(generation)
    }
}

extension LoopFiller {
    /// Asks an origin whether a generation still holds, while it is being given out (RFC 5861 §3). Where it does not,
    /// the next request gets the new one.
    package func revalidate(_ generation: Generation, _ resource: OpenResource, _ demand: Demand) {
        let follower = FollowerID()
        let first = ByteRangeSpec.bounded(first: 0, last: generation.geometry.chunkSize - 1)
        let opened = open(resource, demand.of(first), validating: generation, follower: follower, alone: false)
        guard let (status, _) = opened else { return }
        if !status.wait(follower, at: nil, wake: { status.leave(follower) }) { status.leave(follower) }
    }
}
