import CachePolicy
import DiskCache
import EventIO
import Upstream

/// A fetch, for all loops: how far it is, and who follows it. The fetch itself lives on one loop; what all may know is
/// a part of its resource's state.
package struct SharedFetch: Sendable, Hashable {
    let resource: OpenResource
    let id: FetchID

    package static func == (first: SharedFetch, second: SharedFetch) -> Bool {
        first.resource === second.resource && first.id == second.id
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(resource))
        hasher.combine(id)
    }

    // MARK: For who follows it

    /// What a follower sees. It is there for as long as somebody follows, also when the fetch has ended; who leaves has
    /// to have looked: for what is over, and nobody follows, the answers are a fetch's that was stopped and has found
    /// nothing.
    package enum View: Sendable {
        case running(range: Range<Int64>, frontier: Int64)
        case ended(FetchEnd, frontier: Int64)
    }

    package var view: View {
        read { fetch in
            fetch.end.map { .ended($0, frontier: fetch.frontier) }
                ?? .running(range: fetch.range, frontier: fetch.frontier)
        }
            ?? .ended(.stopped, frontier: 0)
    }

    package var opening: Opening? { read { $0.opening } ?? nil }

    /// Whether what it brings passes by only because the store has no room, or its disk fails.
    var lacksRoom: Bool { read { $0.lacksRoom } ?? false }

    /// Whether it has gone on in memory, as the store has no room.
    var hasSpilled: Bool { read { $0.spill != nil } ?? false }

    /// The status of the origin's last answer; nil before it.
    package var answer: Int? { read { $0.answer } ?? nil }

    /// How far its transfer is, or was when it ended; nil before the first.
    package var phase: UpstreamError.Phase? { read { $0.phase } ?? nil }

    /// Why what it brings passes by; nil where it is kept, or would be.
    package var passingReason: Storing.Reason? { read { $0.passing } ?? nil }

    /// Up to here it has brought bytes: past the frontier, where they are being written.
    var brought: Int64 { read { $0.brought } ?? 0 }

    /// Whether bytes of a chunk are yet to come from here, soon enough to wait for them.
    func brings(_ chunk: Range<Int64>) -> Bool { read { $0.brings(chunk) } ?? false }

    /// Whether the byte at `offset`, which is there, came from here for a follower.
    func hasBrought(_ offset: Int64, to follower: FollowerID) -> Bool {
        read { $0.hasBrought(offset, to: follower) } ?? false
    }

    /// Tells how far a follower has read; a fetch that paused for it goes on.
    /// - Parameter start: where it began, if the fetch does not know yet.
    package func advance(_ follower: FollowerID, to offset: Int64, from start: Int64? = nil) {
        resource.change { $0.resource.advance(follower, id, to: offset, from: start) }
    }

    /// Calls `wake` once, at the next news. If there are some already (the frontier is past `offset`, the fetch has
    /// ended, or has found what it opens while `offset` is nil), nothing is registered.
    /// - Parameter wake: called on any thread, also from within calls of a fetch: it posts, and reaches no fetch itself.
    /// - Returns: whether `wake` will be called.
    package func wait(_ follower: FollowerID, at offset: Int64?, wake: @escaping @Sendable () -> Void) -> Bool {
        resource.change { state in
            guard state.resource.wait(follower, id, at: offset) else { return false }
            state.wakers[follower] = wake
            return true
        }
    }

    /// Follows no longer. A fetch without followers comes to an end, when it has lingered.
    package func leave(_ follower: FollowerID) {
        resource.change { state in
            state.wakers[follower] = nil
            state.resource.leave(follower, id)
        }
    }

    // MARK: For the fetch

    func attach(_ fetch: LoopBound<Fetch>) { resource.change { $0.loops[id] = fetch } }

    func answered(_ status: Int) { note { $0.answer = status } }

    func isIn(_ phase: UpstreamError.Phase) { note { $0.phase = phase } }

    func mayNotStore(_ reason: Storing.Reason) { note { $0.passing = reason } }

    func foundNoRoom() { note { $0.lacksRoom = true } }

    /// The generation that it was asked about still holds.
    func validated(_ generation: Generation, status: Int) {
        ring { $0.opening = .validated(generation, status: status) }
    }

    /// A fetch for a gap turned out to bring the whole, as the origin sends no ranges.
    func moved(to range: Range<Int64>) { ring { $0.begin(range, isUnresumable: true) } }

    /// What comes from `start` on goes into a buffer.
    /// - Parameter furthest: how far past its furthest follower it goes at most, in bytes.
    func spilled(into buffer: Generation, at start: Int64, furthest: Int64) {
        ring { fetch in
            fetch.spill = FetchState.Spill(buffer: buffer, start: start)
            fetch.furthest = furthest
        }
    }

    func published(_ frontier: Int64) { ring { $0.wrote(upTo: frontier) } }

    /// Pauses at the window. Answers whether it did; then a follower's `advance` resumes.
    /// - Parameters:
    ///   - received: up to where it has taken bytes in.
    ///   - position: up to where they are in the file.
    func pauseIfFarAhead(received: Int64, writtenTo position: Int64) -> Bool {
        resource.change { $0.resource.pauses(id, received: received, writtenTo: position) }
    }

    func ended(_ end: FetchEnd) {
        resource.change { state in
            state.resource.ended(id, end)
            state.loops[id] = nil
        }
    }

    /// Ends the fetch if nobody follows it; nobody can join once this has answered true.
    func endIfAbandoned() -> Bool {
        resource.change { state in
            guard state.resource.endsIfAbandoned(id) else { return false }
            state.loops[id] = nil
            return true
        }
    }

    /// Nobody follows it any more, and it goes on for a while. Only one of a resource's does.
    func lingers() { resource.change { $0.resource.lingers(id) } }

    var isAbandoned: Bool { read { $0.isAbandoned } ?? true }

    /// Whether the last that left does not come back at once.
    var wasLeftForGood: Bool { read { $0.wasLeftForGood } ?? false }

    /// Whether nobody waits for it but downloads.
    var isForDownloads: Bool { read { $0.isForDownloads } ?? false }

    /// Whether bytes come in that a reader needs soon.
    var isBeingRead: Bool { read { $0.isBeingRead } ?? false }

    /// The offset of the follower that is furthest behind; nil without followers.
    var slowestFollower: Int64? { read { $0.slowestFollower } ?? nil }

    // MARK: -

    private func read<Value>(_ value: (FetchState) -> Value) -> Value? {
        resource.look { $0.resource.with(id) { value($0) } }
    }

    private func note(_ change: (inout FetchState) -> Void) { resource.look { _ = $0.resource.with(id, change) } }

    private func ring(_ change: (inout FetchState) -> Void) { resource.change { $0.resource.ring(id, change) } }
}
