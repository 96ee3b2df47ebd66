import Activity
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Logging
import Upstream

/// Reads a range of a generation for one response: returns present bytes and has gaps fetched. Loop-bound.
package final class CacheReader {
    /// The result of `next`.
    package enum Step {
        /// The bytes stay valid until the next call.
        case bytes(UnsafeRawBufferPointer, descriptor: Int32?, offset: Int64)
        /// No bytes yet; `onReady` is called when it is worth trying again.
        case wait
        case end
        case failed(FillError)
    }

    /// Called on the loop after `wait`.
    package var onReady: (() -> Void)? {
        get { readyAction }
        set { readyAction = newValue }
    }
    package var generation: Generation { current }
    /// The offset of the next byte.
    package var offset: Int64 { place }
    package var account: ReaderAccount { counts }
    /// Sets whether what it reads counts as played.
    package func count(asPlay isPlay: Bool) { counts.isPlay = isPlay }
    /// Sets whether what it reads counts as sent. Once it does, so does what it has read last.
    /// - Parameter isFetched: whether all of it was fetched for this request, or for one that it joined.
    package func count(asSent isSent: Bool, asFetched isFetched: Bool = false) {
        let wasSent = counts.isSent
        (counts.isSent, counts.isFetched) = (isSent, isFetched)
        if isSent, !wasSent { countLast() }
    }
    /// Whether it has returned `wait` last.
    package var isWaiting: Bool { hasToWait }

    // Other modules reach none of these: each access of theirs to a stored property would be checked for another at the
    // same time.
    private var readyAction: (() -> Void)?
    private var current: Generation
    private var place: Int64
    private var counts = ReaderAccount()
    private var hasToWait = false
    private let start: Int64
    /// The end of the range; nil for the end of a body of unknown length.
    private var end: Int64?

    private let filler: LoopFiller
    private let resource: OpenResource
    private var wanted: Wanted
    /// The counters of its origin.
    private let origin: OriginCounters.Origin
    private let follower: FollowerID
    /// Taken out of this object while a call changes it: no access to it is checked then.
    private var lease: ExtentLease?
    private var window: ReaderWindow
    private var followed: SharedFetch? { didSet { window.reported = nil } }
    private var source = Source.store
    private var isFinished = false

    /// Where the next bytes come from.
    private enum Source {
        case store
        /// Nowhere, as the generation can never be completed. Detected before the first byte is sent, so that the
        /// response can start again.
        case stranded
        /// It is to continue past the cache because the disk could not read its bytes.
        case unreadable
        /// Past the cache.
        case bypass
    }

    private enum Wanted {
        case later(() -> Demand)
        case made(Demand)
    }

    /// Made when something has to be fetched.
    package var demand: Demand {
        switch wanted {
        case .made(let demand): return demand
        case .later(let make):
            let demand = make()
            wanted = .made(demand)
            return demand
        }
    }

    /// - Parameters:
    ///   - end: nil for the end of the resource, wherever that will be.
    ///   - host: of its origin.
    ///   - demand: made when something has to be fetched.
    ///   - status: a fetch that `follower` already follows.
    package init(
        _ generation: Generation, from offset: Int64, to end: Int64?, resource: OpenResource,
        host: String, demand: @autoclosure @escaping () -> Demand, filler: LoopFiller,
        follower: FollowerID = FollowerID(), following status: SharedFetch? = nil
    ) {
        (current, place, start) = (generation, offset, offset)
        self.end = end
        self.resource = resource
        wanted = .later(demand)
        (self.filler, origin) = (filler, filler.origins.counters(of: host))
        self.follower = follower
        window = ReaderWindow(readable: offset)
        if !generation.isStored { source = .bypass }
        var first: ExtentLease?
        let (view, readable, isResident) = ExtentLease.begin(
            reading: generation, at: offset, limit: end ?? .max, &first)
        lease = first
        window.readable = readable
        if isResident { window.warmed = readable }
        if let status {
            counts.lacksRoom = !generation.isStored && status.obstacle != nil
            adopt(status)
        } else if view.length == nil || view.head.rangeCondition == nil {
            if let status = resource.joinUnresumable(self.follower, of: generation, at: offset) {
                adopt(status)
            } else if lacksBytes {
                source = .stranded
            }
        } else if let end, offset < end {
            // A player that reconnects resumes the transfer that it left.
            followed = resource.takeUp(self.follower, offset..<end, of: generation)
        }
    }

    /// Whether part of the range is absent and no fetch can deliver it.
    private var lacksBytes: Bool {
        guard generation.isStored else { return false }
        guard let length = generation.length else { return true }
        return generation.coverage(of: min(offset, length)..<(end ?? length)) != .whole
    }

    private func adopt(_ status: SharedFetch) {
        followed = status
        // The fetch may be paused for a follower that is further behind.
        status.advance(follower, to: offset, from: start)
        window.reported = offset
    }

    /// The origin's status for the bytes that come next; nil while no fetch delivers them.
    package var originStatus: Int? { followed?.answer }

    private var isBypassing: Bool { if case .bypass = source { true } else { false } }

    /// Whether the next bytes come from a transfer.
    package var isFollowing: Bool { followed != nil }

    /// The phase of the transfer that delivers the next bytes; nil without one.
    package var followedPhase: UpstreamError.Phase? { followed?.phase }

    /// Bytes left to return; nil while the length is unknown.
    package var remaining: Int64? { end.map { $0 - offset } }

    /// Returns the next bytes, at most `limit`.
    /// - Parameter copies: whether this process itself looks at them, and so gets copies: what is mapped is for the
    ///   kernel alone.
    package func next(limit: Int, copies: Bool = false) -> Step {
        let step = nextStep(limit, copies)
        if case .wait = step { hasToWait = true } else { hasToWait = false }
        return step
    }

    private func nextStep(_ limit: Int, _ copies: Bool) -> Step {
        giveBackPiece()
        if end == nil, let length = generation.length { end = length }
        if let end, offset >= end { return .end }
        switch source {
        case .store, .bypass: break
        case .stranded:
            source = .store
            if let step = loss() { return step }
        case .unreadable:
            (source, counts.hasLeftDisk) = (.store, true)
            if let step = bypass() { return step }
        }
        if let followed, window.reported != offset {
            followed.advance(follower, to: offset)
            window.reported = offset
        }
        while true {
            if case .bypass = source, generation.isStored {
                if let step = awaitBuffer() { return step }
            }
            if offset < window.readable { return give(limit, copies) }
            switch look() {
            case .bytes(let until):
                guard until > offset else { return .end }
                window.readable = until
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

    private func look() -> ExtentLease.Availability {
        var held = lease.take()
        let found = generation.acquire(at: offset, limit: end ?? .max, lease: &held)
        lease = held
        return found
    }

    private func give(_ limit: Int, _ copies: Bool) -> Step {
        // Held once: each look at a property that may change counts a reference.
        let (generation, offset) = (current, place), mapping: MappedBytes
        if let known = window.mapping, known.range.contains(offset) {
            mapping = known
        } else {
            if copies, generation.isStored { return copyFirst(limit) ?? copy() }
            do throws(StoreError) {
                let isFirst = window.last.range.isEmpty
                let known = isFirst ? try generation.file.mappingOfSecondUse(at: offset) : nil
                if isFirst, known == nil, let step = copyFirst(limit) { return step }
                mapping = if let known { known } else { try generation.file.mapping(at: offset) }
                window.mapping = mapping
            } catch {
                if error.isUnmappable { return copy() }
                if error.isShortageOfMemory, generation.isStored { return copyFirst(limit) ?? copy() }
                filler.filler.store.reportDisk("map a cached file", error, label: "disk-read")
                return .failed(.notStored("\(error)"))
            }
        }
        let range = offset..<min(window.readable, offset + Int64(limit), mapping.range.upperBound)
        let isFresh = isFresh
        do throws(StoreError) { try generation.checkBytes(upTo: range.upperBound) } catch {
            return lookAgain(after: error)
        }
        // One reading is enough, whatever the system then says: some file systems never call their pages resident.
        if !copies && !isFresh && offset >= window.warmed && !generation.isResident(range) { return warm(range) }
        note(range, isFresh: isFresh)
        return .bytes(mapping.bytes(range), descriptor: generation.file.descriptor, offset: range.lowerBound)
    }

    /// Copies the first piece instead of mapping the file around it: that is cheaper for a seek or a short file that
    /// nobody else reads. A reader that reads on finds the next piece mapped.
    private func copyFirst(_ limit: Int) -> Step? {
        let range = offset..<min(window.readable, offset + Int64(min(limit, PieceBuffers.size)))
        let buffer = filler.pieces.take(), bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<range.count])
        guard generation.file.readAtOnce(into: bytes, at: range.lowerBound) else {
            filler.pieces.give(buffer)
            return nil
        }
        window.piece = buffer
        note(range, isFresh: isFresh)
        return .bytes(UnsafeRawBufferPointer(bytes), descriptor: nil, offset: 0)
    }

    /// Whether the next bytes were fetched for this request, or for one that it joined.
    private var isFresh: Bool {
        guard let followed else { return false }
        return followed.hasDelivered(offset, to: follower)
    }

    private func giveBackPiece() {
        guard let piece = window.piece else { return }
        window.piece = nil
        filler.pieces.give(piece)
    }

    private func note(_ range: Range<Int64>, isFresh: Bool) {
        let isFresh = isFresh || counts.isFetched
        // What was in memory at the beginning may have left it when the player comes back.
        if window.last.range.isEmpty { window.warmed = min(window.warmed, range.upperBound) }
        place = range.upperBound
        window.last = (range, isFresh)
        // Fresh bytes were fetched for this request, or for one that it joined.
        let count = Int64(range.count)
        if isFresh { counts.fetched += count } else { counts.stored += count }
        if counts.isSent { countLast() }
    }

    private func countLast() {
        let count = Int64(window.last.range.count)
        if window.last.isFresh {
            filler.filler.metrics.bytesFromUpstream.add(count)
            origin.sentFromOrigin.add(count)
        } else {
            filler.filler.metrics.bytesFromCache.add(count)
            origin.sentFromCache.add(count)
        }
    }

    /// Takes the last `count` of the last returned bytes back, because they could not be read: they are returned again,
    /// as they are fetched.
    /// - Returns: false if they came from no disk.
    package func rewind(by count: Int) -> Bool {
        guard generation.isStored, count <= window.last.range.count else { return false }
        place -= Int64(count)
        if window.last.isFresh { counts.fetched -= Int64(count) } else { counts.stored -= Int64(count) }
        filler.filler.store.reportDisk(
            "read a cached resource, which is fetched instead",
            generation.noteUnreadable(offset..<window.last.range.upperBound), label: "disk-read")
        window.rewind(to: offset)
        if generation.isUnreadable { source = .unreadable }
        return true
    }

    // MARK: Absent bytes

    /// Has the byte at `offset` fetched, or waits for it.
    /// - Returns: nil if the caller should look again at once.
    private func waitForBytes() -> Step? {
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
            if fetch != followed {
                noteFollowing(isNew: gap != nil)
                followed = fetch
            }
            // The new fetch may have ended already, for example because the proxy is offline.
            if gap != nil, case .ended = fetch.view { return nil }
            return .wait
        case .passing(let buffer):
            passThrough(buffer)
            return nil
        case .failed(let error):
            followed = nil
            if error.kind == .noRoom, !isBypassing { return bypass() }
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
        guard !isNew else { return filler.filler.logger.trace("\(resource.key.text): fetching from \(offset)") }
        if !account.isCollapsed { filler.filler.metrics.collapsed.add() }
        counts.isCollapsed = true
        filler.filler.logger.trace("\(resource.key.text): joining another request's fetch at \(offset)")
    }

    /// No fetch can deliver the next byte.
    private func loss() -> Step? {
        // The fetch ended between the look at the bytes and now, so the length is known.
        if end == nil, generation.length != nil { return nil }
        if isBypassing { return .failed(.unusable("it does not contain the requested bytes")) }
        return abandonGeneration()
    }

    /// Gives up a generation without a length or a validator: a gap might be filled with another version's bytes. The
    /// next request fetches the whole again.
    private func abandonGeneration() -> Step {
        resource.invalidate(generation)
        filler.filler.store.retire(generation)
        return .failed(.changed)
    }

    /// Continues past the cache because the store has no room, or the disk fails.
    private func bypass() -> Step? {
        guard let end, generation.head.rangeCondition != nil else {
            let obstacle = account.hasLeftDisk ? "the disk cannot read what is cached" : "the cache has no room"
            return .failed(.notStored(obstacle))
        }
        followed?.leave(follower)
        followed = filler.bypass(
            offset..<end, of: generation, resource, demand, follower: follower, isMidway: offset > start)
        (source, counts.lacksRoom) = (.bypass, !account.hasLeftDisk)
        return awaitBuffer()
    }

    private func awaitBuffer() -> Step? {
        guard let followed else { return .failed(.unusable("the fetch of the rest has ended")) }
        let result = followed.result
        if case .passing(let buffer, _, _, _)? = result.opening {
            passThrough(buffer)
            return nil
        }
        if let end = result.end {
            if case .failed(let error) = end { return .failed(error) }
            return .failed(.unusable("it ended before the header was complete"))
        }
        return followed.wait(follower, at: nil, wake: wakeUp()) ? .wait : nil
    }

    private func passThrough(_ buffer: Generation) {
        (source, counts.lacksRoom) = (.bypass, !account.hasLeftDisk)
        endReading(having: 0..<0)
        current = buffer
        generation.beginReading()
        window.rewind(to: offset)
    }

    // MARK: Bytes that have to be read from the disk first

    private func verify() -> Step {
        filler.filler.store.verifier.verify(generation, extent: generation.geometry.extent(at: offset), then: wakeUp())
        return .wait
    }

    private func warm(_ range: Range<Int64>) -> Step {
        let bound = LoopBound(self, on: filler.loop)
        filler.filler.store.warm(generation, range) { isRead in bound.post { $0.wake(isRead: isRead) } }
        window.warmed = range.upperBound
        // Chunks that the file has lost are absent by then: look again.
        window.readable = offset
        return .wait
    }

    /// The file was cut short underneath: what it lacks is absent now, and is fetched.
    private func lookAgain(after error: StoreError) -> Step {
        filler.filler.store.reportDisk("read a cached file that was cut short", error, label: "disk-read")
        window.rewind(to: offset)
        wakeLater()
        return .wait
    }

    /// Has the next bytes copied, as the file cannot be mapped: the copy takes the mapping's place.
    private func copy() -> Step {
        let range = offset..<min(window.readable, offset + Self.copiedBytes), bound = LoopBound(self, on: filler.loop)
        filler.filler.store.copy(generation, range) { copy in
            bound.post { reader in
                guard !reader.isFinished else { return }
                reader.window.mapping = copy
                reader.wake(isRead: copy != nil)
            }
        }
        // As above.
        window.readable = offset
        return .wait
    }

    private static let copiedBytes: Int64 = 256 << 10

    // MARK: Waking

    private func wakeUp() -> @Sendable () -> Void {
        let bound = LoopBound(self, on: filler.loop)
        return { bound.post { $0.wake() } }
    }

    private func wakeLater() {
        wakeUp()()
    }

    /// - Parameter isRead: whether the disk has read what was wanted.
    private func wake(isRead: Bool = true) {
        guard !isFinished else { return }
        if !isRead, generation.isUnreadable { source = .unreadable }
        readyAction?()
    }

    /// Ends the response: gives up leases and leaves the fetch.
    package func finish() {
        guard !isFinished else { return }
        isFinished = true
        readyAction = nil
        // What it was given last counts as read, too: the transfer goes on by as much as was read.
        followed?.leave(follower, at: offset)
        followed = nil
        window.mapping = nil
        giveBackPiece()
        endReading(having: counts.isPlay && !isBypassing ? Range(from: start, upTo: offset) ?? 0..<0 : 0..<0)
    }

    private func endReading(having range: Range<Int64>) {
        guard let lease = lease.take() else { return generation.endReading(having: range) }
        lease.end(reading: generation, having: range)
    }
}
