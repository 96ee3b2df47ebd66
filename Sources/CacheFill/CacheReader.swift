import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Logging
import Upstream

/// One response's way through a range of a generation: gives what is there, has fetched what is not. Loop-bound.
package final class CacheReader {
    /// What is next.
    package enum Step {
        /// These bytes stay where they are until the next call.
        case bytes(UnsafeRawBufferPointer, descriptor: Int32?, offset: Int64)
        /// Nothing yet; `onReady` is called when it is worth to ask again.
        case wait
        case end
        case failed(FillError)
    }

    /// Called on the loop after `wait`.
    package var onReady: (() -> Void)?
    package private(set) var generation: Generation
    private let start: Int64
    /// The next byte.
    package private(set) var offset: Int64
    /// Past the last byte; nil where it is the end of a body of unknown length.
    private var end: Int64?
    /// Whether it follows a fetch that another request started.
    package private(set) var isCollapsed = false
    /// Whether bytes pass by that would be kept, if the store had room.
    package private(set) var lacksRoom = false

    /// What it has given that was stored before, and what was fetched for it, or for a request that it joined; in
    /// bytes.
    package private(set) var given: (stored: Int64, fetched: Int64) = (0, 0)

    private let filler: LoopFiller
    private let resource: OpenResource
    private let demand: Demand
    private let follower: FollowerID
    private var lease: ExtentLease?
    /// Bytes up to here were found readable, in the leased extent.
    private var readable: Int64
    private var lastGiven: Range<Int64> = 0..<0
    /// What was given last stands in it.
    private var mapping: MappedBytes?
    /// What was given first stands in it, where nothing was mapped.
    private var piece: UnsafeMutableRawBufferPointer?
    private var followed: SharedFetch?
    private var isBypassing = false
    /// What was found can never be completed: known before the first byte goes out, so that the answer can begin anew.
    private var isStranded = false
    private var isFinished = false

    /// - Parameters:
    ///   - range: the upper end is nil for the end of the resource, wherever that will be.
    ///   - status: a fetch that `follower` follows already.
    package init(
        _ generation: Generation, from offset: Int64, to end: Int64?, resource: OpenResource, demand: Demand,
        filler: LoopFiller,
        follower: FollowerID = FollowerID(), following status: SharedFetch? = nil
    ) {
        self.generation = generation
        start = offset
        self.offset = offset
        self.end = end
        self.resource = resource
        self.demand = demand
        self.filler = filler
        self.follower = follower
        readable = offset
        isBypassing = !generation.isStored
        let view = generation.beginReading()
        if let status {
            lacksRoom = status.lacksRoom
            adopt(status)
        } else if view.length == nil || view.head.rangeCondition == nil {
            if let status = resource.joinUnresumable(self.follower, of: generation, at: offset) {
                adopt(status)
            } else {
                isStranded = lacksBytes
            }
        } else if let end, offset < end {
            // A player that comes back finds the transfer that it has left.
            followed = resource.takeUp(self.follower, offset..<end, of: generation)
        }
    }

    /// Whether something of the range is not there, and nothing brings it any more.
    private var lacksBytes: Bool {
        guard generation.isStored else { return false }
        guard let length = generation.length else { return true }
        return generation.coverage(of: min(offset, length)..<(end ?? length)) != .whole
    }

    private func adopt(_ status: SharedFetch) {
        followed = status
        // It may be pausing for a follower that is further behind.
        status.advance(follower, to: offset, from: start)
    }

    /// The status with which the origin answered for what comes from there; nil while nothing does.
    package var originStatus: Int? { followed?.answer }

    /// Whether what comes next is to come from a transfer.
    package var isFollowing: Bool { followed != nil }

    /// How far the transfer is that brings what comes next; nil without one.
    package var followedPhase: UpstreamError.Phase? { followed?.phase }

    /// Bytes still to come; nil while the length is unknown.
    package var remaining: Int64? { end.map { $0 - offset } }

    /// The next bytes, at most `limit`.
    package func next(limit: Int) -> Step {
        giveBackPiece()
        if end == nil, let length = generation.length { end = length }
        if let end, offset >= end { return .end }
        if isStranded {
            isStranded = false
            if let step = loss() { return step }
        }
        followed?.advance(follower, to: offset)
        while true {
            if offset < readable { return give(limit) }
            switch look() {
            case .bytes(let until):
                guard until > offset else { return .end }
                readable = until
            case .unverified:
                return verify()
            case .absent:
                if let step = waitForBytes() { return step }
                if end == nil, let length = generation.length {
                    end = length
                    if offset >= length { return .end }
                }
            }
        }
    }

    private func look() -> Availability { generation.acquire(at: offset, limit: end ?? .max, lease: &lease) }

    private func give(_ limit: Int) -> Step {
        if mapping?.range.contains(offset) != true {
            do throws(StoreError) {
                if lastGiven.isEmpty {
                    mapping = try generation.mappingOfSecondUse(at: offset)
                    if mapping == nil, let step = copyFirst(limit) { return step }
                }
                if mapping?.range.contains(offset) != true { mapping = try generation.mapping(at: offset) }
            } catch {
                filler.filler.store.reportDisk("map what is read", error, label: "disk-read")
                return .failed(.notStored("\(error)"))
            }
        }
        guard let mapping else { return .wait }
        let range = offset..<min(readable, offset + Int64(limit), mapping.range.upperBound)
        let isFresh = followed?.hasBrought(offset, to: follower) == true
        if !isFresh && !generation.isResident(range) { return warm(range) }
        note(range, isFresh: isFresh)
        return .bytes(mapping.bytes(range), descriptor: generation.descriptor, offset: range.lowerBound)
    }

    /// A player that seeks, and a short file, want one piece of what nobody else reads: it is copied, as that costs
    /// less than to map the file around it. Who reads on finds the next piece mapped.
    private func copyFirst(_ limit: Int) -> Step? {
        let range = offset..<min(readable, offset + Int64(min(limit, PieceBuffers.size)))
        let buffer = filler.pieces.take(), bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<range.count])
        guard generation.readAtOnce(into: bytes, at: range.lowerBound) else {
            filler.pieces.give(buffer)
            return nil
        }
        piece = buffer
        note(range, isFresh: followed?.hasBrought(offset, to: follower) == true)
        return .bytes(UnsafeRawBufferPointer(bytes), descriptor: nil, offset: 0)
    }

    private func giveBackPiece() {
        if let piece { filler.pieces.give(piece) }
        piece = nil
    }

    private func note(_ range: Range<Int64>, isFresh: Bool) {
        offset = range.upperBound
        lastGiven = range
        // Fresh: fetched for this request, or for one that it joined.
        if isFresh { given.fetched += Int64(range.count) } else { given.stored += Int64(range.count) }
        (isFresh ? filler.filler.metrics.bytesFromUpstream : filler.filler.metrics.bytesFromCache).add(
            Int64(range.count))
    }

    /// What was given last cannot be read: it is fetched again by who asks next.
    package func dropLast() {
        generation.dropChunks(touching: lastGiven)
    }

    // MARK: What is not there

    /// Sees to it that the byte at `offset` comes.
    /// - Returns: nil where there is news already.
    private func waitForBytes() -> Step? {
        if isBypassing && generation.isStored { return awaitBuffer() }
        let geometry = generation.geometry
        let found = filler.locate(
            offset, in: geometry.chunkBytes(geometry.chunk(at: offset), length: generation.length), upTo: end,
            of: generation, resource, demand,
            follower, from: start, following: followed, isMidway: offset > start, isThere: { look() != .absent },
            wake: wakeUp())
        switch found {
        case .present:
            return nil
        case .coming(let id, let gap):
            let fetch = SharedFetch(resource: resource, id: id)
            if fetch != followed { noteFollowing(isNew: gap != nil) }
            followed = fetch
            // Where no origin is to be asked, say.
            if gap != nil, case .ended = fetch.view { return nil }
            return .wait
        case .passing(let buffer):
            passThrough(buffer)
            return nil
        case .failed(let error):
            followed = nil
            if case .notStored = error, !isBypassing { return bypass() }
            return .failed(error)
        case .lost:
            followed = nil
            return loss()
        case .unsettled:
            followed = nil
            wakeLater()
            return .wait
        }
    }

    private func noteFollowing(isNew: Bool) {
        guard !isNew else { return filler.filler.logger.trace("\(resource.key.text): from \(offset) on it is fetched") }
        if !isCollapsed { filler.filler.metrics.collapsed.add() }
        isCollapsed = true
        filler.filler.logger.trace("\(resource.key.text): from \(offset) on a fetch brings it that another has started")
    }

    /// Nothing brings it any more.
    private func loss() -> Step? {
        // The end was seen between the look at the bytes and here.
        if end == nil, generation.length != nil { return nil }
        if isBypassing { return .failed(.unusable("it does not bring what was asked for")) }
        return abandonGeneration()
    }

    /// Without a length or a validator nothing tells whether a gap would be filled with the same version's bytes: the
    /// next request fetches the whole anew.
    private func abandonGeneration() -> Step {
        resource.invalidate(generation)
        filler.filler.store.retire(generation)
        return .failed(.changed)
    }

    /// The store has no room: what is still wanted comes past it.
    private func bypass() -> Step? {
        guard let end, generation.head.rangeCondition != nil else {
            return .failed(.notStored("the cache has no room"))
        }
        followed = filler.bypass(
            offset..<end, of: generation, resource, demand, follower: follower, isMidway: offset > start)
        isBypassing = true
        lacksRoom = true
        return awaitBuffer()
    }

    private func awaitBuffer() -> Step? {
        guard let followed else { return .failed(.unusable("nothing brings it any more")) }
        // In this order: one that has ended has nothing more to tell.
        let view = followed.view
        if case .passing(let buffer, _, _, _)? = followed.opening {
            passThrough(buffer)
            return nil
        }
        if case .ended(let end, _) = view {
            if case .failed(let error) = end { return .failed(error) }
            return .failed(.unusable("it ended before its head"))
        }
        return followed.wait(follower, at: nil, wake: wakeUp()) ? .wait : nil
    }

    private func passThrough(_ buffer: Generation) {
        isBypassing = true
        lacksRoom = true
        lease = nil
        mapping = nil
        generation.endReading()
        generation = buffer
        generation.beginReading()
        readable = offset
    }

    private func unfollow() {
        followed?.leave(follower)
        followed = nil
    }

    // MARK: What has to be read first

    private func verify() -> Step {
        filler.filler.store.verify(generation, extent: generation.geometry.extent(at: offset), then: wakeUp())
        return .wait
    }

    private func warm(_ range: Range<Int64>) -> Step {
        let wake = wakeUp()
        filler.filler.store.warm(generation, range) { _ in wake() }
        // What could not be read is absent now: look again.
        readable = offset
        return .wait
    }

    // MARK: Waking

    private func wakeUp() -> @Sendable () -> Void {
        let bound = LoopBound(self, on: filler.loop)
        return { bound.post { $0.wake() } }
    }

    private func wakeLater() {
        wakeUp()()
    }

    private func wake() {
        guard !isFinished else { return }
        onReady?()
    }

    /// The response is over. Gives back leases and leaves the fetch.
    package func finish() {
        guard !isFinished else { return }
        isFinished = true
        onReady = nil
        unfollow()
        lease = nil
        mapping = nil
        giveBackPiece()
        generation.endReading()
    }
}
