import CachePolicy
import DiskCache
import EventIO
import Upstream

/// A fetch as seen from all loops: its progress and its followers. The fetch itself lives on one loop; its shared part
/// is in its resource's state.
package struct SharedFetch: Sendable, Hashable {
    let resource: OpenResource
    let id: FetchState.ID

    package static func == (first: SharedFetch, second: SharedFetch) -> Bool {
        first.resource === second.resource && first.id == second.id
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(resource))
        hasher.combine(id)
    }

    // MARK: For followers

    /// What a follower sees. It remains visible after the fetch has ended, for as long as somebody follows. Look before
    /// leaving: a fetch that is over and has no followers looks like one that was stopped and found nothing.
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

    /// What it has found, and how it ended, looked at together: on its own loop it may open and end at any moment. What
    /// it has for one follower alone (`share`) was noted before that, so it is to be read after this.
    package var result: (opening: Opened?, end: FetchEnd?) { read { ($0.opening, $0.end) } ?? (nil, .stopped) }

    /// Whose request it is; nil for a gap.
    package var requester: Requester? { read { $0.requester } ?? nil }

    /// Why its bytes pass through although they might be stored: the store has no room, or its disk failed.
    var obstacle: FillError? { read { $0.obstacle } ?? nil }

    /// The status of the origin's last answer; nil before the first.
    package var answer: Int? { read { $0.answer } ?? nil }

    /// The phase of its transfer, or its last phase once that has ended; nil before the first transfer.
    package var phase: UpstreamError.Phase? { read { $0.phase } ?? nil }

    /// Why its bytes pass through; nil if they are stored, or would be if there were room.
    package var passingReason: Storing.Reason? { read { $0.passing } ?? nil }

    /// All three at one moment: `answer`, `isKeptShort`, `passingReason`.
    package var nature: (answer: Int?, isKeptShort: Bool, passingReason: Storing.Reason?) {
        read { ($0.answer, $0.isKeptShort, $0.passing) } ?? (nil, false, nil)
    }

    /// What the origin has sent for this follower alone so far.
    package func share(of follower: FollowerID) -> (cookies: [String], interims: [InterimResponse]) {
        guard let share = read({ $0.ownersShare }) ?? nil, share.owner == follower else { return ([], []) }
        return (share.cookies, share.interims)
    }

    /// Whether the response sets cookies, for its own client.
    package var setsCookies: Bool { read { $0.ownersShare?.cookies.isEmpty == false } ?? false }

    /// Whether what passes through is stored as a short response.
    package var isKeptShort: Bool { read { $0.isKeptShort } ?? false }

    /// Its bytes up to here have arrived, those that are still being written included.
    var delivered: Int64 { read { $0.delivered } ?? 0 }

    /// Whether it will deliver bytes of a chunk, soon enough to wait for them.
    func delivers(_ chunk: Range<Int64>) -> Bool { read { $0.delivers(chunk) } ?? false }

    /// The same, or it has just delivered them and they are not written yet.
    func reaches(_ chunk: Range<Int64>) -> Bool { read { $0.reaches(chunk) } ?? false }

    /// Whether it delivered the present byte at `offset` for a follower.
    func hasDelivered(_ offset: Int64, to follower: FollowerID) -> Bool {
        read { $0.hasDelivered(offset, to: follower) } ?? false
    }

    /// Tells how far a follower has read; a fetch that paused for it resumes.
    /// - Parameter start: where the follower began, if the fetch does not know yet.
    package func advance(_ follower: FollowerID, to offset: Int64, from start: Int64? = nil) {
        resource.change { $0.resource.advance(follower, id, to: offset, from: start) }
    }

    /// The same; nil if there is neither. Then `wake` is called once there is, as by `wait`.
    package func result(for follower: FollowerID, orWake wake: @escaping @Sendable () -> Void)
        -> (opening: Opened?, end: FetchEnd?)?
    {
        resource.change { state in
            if state.resource.wait(follower, id, at: nil) {
                state.wakers[follower] = wake
                return nil
            }
            return state.resource.with(id) { ($0.opening, $0.end) } ?? (nil, .stopped)
        }
    }

    /// Calls `wake` once, at the next news. Registers nothing if there is news already: the frontier is past `offset`,
    /// the fetch has ended, or, with `offset` nil, it has opened.
    /// - Parameter wake: called on any thread, also from within calls of a fetch; it should post, and must not use a
    ///   fetch.
    /// - Returns: whether `wake` will be called.
    package func wait(_ follower: FollowerID, at offset: Int64?, wake: @escaping @Sendable () -> Void) -> Bool {
        resource.change { state in
            guard state.resource.wait(follower, id, at: offset) else { return false }
            state.wakers[follower] = wake
            return true
        }
    }

    /// Removes a follower. A fetch without followers lingers and then ends.
    /// - Parameter offset: how far it has read, if the fetch does not know.
    package func leave(_ follower: FollowerID, at offset: Int64? = nil) {
        resource.change { state in
            state.wakers[follower] = nil
            if let offset { state.resource.advance(follower, id, to: offset) }
            state.resource.leave(follower, id)
        }
    }

    /// Removes a download, after it has counted what was delivered for it.
    func leave(_ follower: FollowerID, counting pace: FillPace?) {
        count(pace)
        leave(follower)
    }

    /// Counts the bytes that were delivered for downloads alone since the last time.
    func count(_ pace: FillPace?) {
        guard let pace else { return }
        let bytes = resource.look { $0.resource.with(id) { $0.takeForDownloads() } } ?? 0
        if bytes > 0 { pace.deliver(bytes) }
    }

    // MARK: For the fetch

    /// How it and its resource are at one moment.
    struct Standing {
        /// Whether all its followers are downloads.
        let isForDownloads: Bool
        let isAbandoned: Bool
        /// The resource's last play.
        let play: OngoingPlay?
        /// `OpenResource.changes`
        let changes: Int
    }

    var standing: Standing { resource.look { $0.standing(of: id) } }

    /// - Parameter hear: called when its followers change, from now on.
    func begin(_ hear: @escaping @Sendable (ResourceState.Notice) -> Void) -> Standing {
        resource.change { state in
            state.loops.append((id, hear))
            return state.standing(of: id)
        }
    }

    /// Whether further bytes are taken in.
    enum Admission {
        /// - neededFrom: the offset of the follower that is furthest behind; nil without followers.
        case taken(neededFrom: Int64?)
        /// It has reached its window: a follower's `advance` resumes it.
        case paused
    }

    /// Takes further bytes in, or pauses the fetch.
    /// - Parameters:
    ///   - received: the end of the bytes received.
    ///   - position: the end of the bytes in the file.
    ///   - count: the number of further bytes that are here.
    ///   - within: another limit on the window, in bytes.
    func admit(received: Int64, writtenTo position: Int64, before count: Int, within: Int64) -> Admission {
        resource.look { state in
            state.resource.pauses(id, received: received, writtenTo: position, before: count, within: within)
                ? .paused : .taken(neededFrom: state.resource.with(id) { $0.slowestFollower } ?? nil)
        }
    }

    /// - Parameter position: the end of what has been written, if followers have not been told.
    func ended(_ end: FetchEnd, writtenTo position: Int64? = nil) {
        resource.change { state in
            state.resource.ended(id, end, writtenTo: position)
            state.loops.removeAll { $0.id == id }
        }
    }

    /// Ends the fetch if it has no followers. Once this has returned true, nobody can join it.
    func endIfAbandoned() -> Bool {
        resource.change { state in
            guard state.resource.endsIfAbandoned(id) else { return false }
            state.loops.removeAll { $0.id == id }
            return true
        }
    }

    var isAbandoned: Bool { read { $0.isAbandoned } ?? true }

    /// Whether all its followers are downloads.
    var isForDownloads: Bool { read { $0.isForDownloads } ?? false }

    /// Its range, the end of what has arrived, and what its followers are.
    var progress: (range: Range<Int64>, arrived: Int64, followers: Set<FollowerID.Kind>)? {
        read { ($0.range, $0.delivered, Set($0.followers.keys.lazy.map(\.kind))) }
    }

    /// The offset of the follower that is furthest behind; nil without followers.
    var slowestFollower: Int64? { read { $0.slowestFollower } ?? nil }

    // MARK: Its state

    /// - Returns: nil if the fetch is over and nobody follows it any more.
    func read<Value>(_ value: (FetchState) -> Value) -> Value? {
        resource.look { $0.resource.with(id) { value($0) } }
    }

    /// Changes what no follower waits for.
    func note(_ change: (inout FetchState) -> Void) { resource.look { _ = $0.resource.with(id, change) } }

    /// Changes what followers wait for, and wakes them.
    func ring(_ change: (inout FetchState) -> Void) { resource.change { $0.resource.ring(id, change) } }
}
