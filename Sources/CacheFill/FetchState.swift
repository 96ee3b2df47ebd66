import CachePolicy
import DiskCache
import Synchronization
import Upstream

/// Identifies who follows a fetch.
package struct FollowerID: Hashable, Sendable {
    /// For what it follows.
    package enum Kind: Sendable {
        /// A reader, or a waiting request: somebody waits at the other end.
        case reader
        /// What is filled beyond its reader.
        case fill
        /// It tries again by itself, later, and does not come back at once when it has left.
        case download
        /// What a player is about to ask for: downloads make way for it as for a reader, and when it has left, it is for
        /// something else.
        case ahead

        /// Whether nobody is expected back who has left.
        var leavesForGood: Bool { self == .download || self == .ahead }

        /// Whether somebody plays, who needs it soon.
        var isPlaying: Bool { self == .reader || self == .ahead }
    }

    package let kind: Kind
    private let value: UInt64
    private static let next = Atomic<UInt64>(0)

    package init(_ kind: Kind = .reader) {
        self.kind = kind
        value = Self.next.wrappingAdd(1, ordering: .relaxed).newValue
    }
}

/// What an opening fetch found.
package enum Opening: Sendable {
    /// The resource's generation, from which anyone may read.
    case stored(Generation)
    /// A response that is not stored: a buffer for the one who asked; others ask for themselves.
    /// - part: the bytes that come, where they are not the whole.
    /// - total: the length of the whole; nil where the origin keeps it to itself (`bytes 0-9/*`).
    case passing(Generation, owner: FollowerID, part: Range<Int64>?, total: Int64?)
    /// The generation that is there still holds, says its origin, with this status.
    case validated(Generation, status: Int)
}

/// How a fetch ended.
package enum FetchEnd: Sendable {
    /// All that was wanted is in the file.
    case completed
    /// Nobody followed it any more, or it met bytes that are there already.
    case stopped
    case failed(FillError)
}

/// One fetch: what it brings, how far it is, and who follows it. A value, without lock, clock and thread
/// (`ResourceState`).
struct FetchState {
    /// nil until the origin has said what the resource is.
    var opening: Opening?
    /// Offsets that this fetch fills; the upper end is open (`Int64.max`) while the length is unknown.
    private(set) var range: Range<Int64>
    /// Up to here its bytes are in the file.
    private(set) var frontier: Int64
    /// Up to here bytes were taken in; those past the frontier are yet to be written.
    private(set) var received: Int64
    var end: FetchEnd?
    /// Whether it fills gaps of the current generation, so that others may follow it.
    var isShared: Bool
    /// At the window: waits for its furthest follower.
    private(set) var isPaused = false
    private(set) var followers: [FollowerID: Place] = [:]
    /// Those that are woken at the next news.
    var waiting: Set<FollowerID> = []
    /// The last follower's place, once nobody follows any more.
    private(set) var departed: Place?
    private(set) var wasLeftForGood = false
    /// How far past its furthest follower the fetch goes; past its slowest, once it spilled.
    let window: ReadAheadWindow
    /// In bytes; the window is never further, as what lies beyond could not be kept.
    var furthest: Int64
    /// Whether what it brings comes in no other way, so that followers wait for it however far ahead they are: the
    /// origin sends no ranges, or nothing would tell whether another answer is of the same version.
    var isUnresumable = false
    var spill: Spill?
    /// Whether what it brings would be kept, if the store had room.
    var lacksRoom = false
    /// The status of the origin's last answer; nil before it.
    var answer: Int?
    /// Why what it brings passes by; nil where it is kept, or would be.
    var passing: Storing.Reason?
    /// How far its transfer is, or was when it ended; nil before the first.
    var phase: UpstreamError.Phase?

    /// From `start` on the bytes stand in a buffer in memory, as the store has no room and they come in no other way.
    /// It takes no more than what its slowest follower has yet to read.
    struct Spill: Sendable {
        let buffer: Generation
        let start: Int64
    }

    /// Where a follower is.
    struct Place: Equatable, Sendable {
        /// Where it began to read.
        var start: Int64
        var offset: Int64
        /// Bytes before this were there before it came: not fetched for it.
        var freshFrom: Int64 = 0
    }

    /// A follower that is at most so far ahead of the frontier waits for it; one further on gets a fetch of its own.
    static let joinDistance: Int64 = 1 << 20

    init(range: Range<Int64>, _ reach: ResourceState.Reach, isShared: Bool) {
        (self.range, frontier, received) = (range, range.lowerBound, range.lowerBound)
        (window, furthest, self.isShared) = (reach.window, reach.furthest, isShared)
    }

    var isRunning: Bool { end == nil }
    var isAbandoned: Bool { followers.isEmpty }

    /// Whether nobody waits for it but downloads.
    var isForDownloads: Bool { !followers.isEmpty && hasOnlyDownloads }

    var hasOnlyDownloads: Bool { followers.keys.allSatisfy { $0.kind == .download } }

    /// The offset of the follower that is furthest behind; nil without followers.
    var slowestFollower: Int64? { followers.values.lazy.map(\.offset).min() }

    // MARK: What it brings

    /// Whether bytes of a chunk are yet to come from here, soon enough to wait for them.
    func brings(_ chunk: Range<Int64>) -> Bool {
        isRunning && range.overlaps(chunk) && frontier < chunk.upperBound
            && (isUnresumable || chunk.lowerBound - frontier <= Self.joinDistance)
    }

    /// Whether the byte at `offset`, which is there, came from here for a follower. It may be there before the frontier
    /// tells.
    func hasBrought(_ offset: Int64, to follower: FollowerID) -> Bool {
        range.contains(offset) && offset - frontier < Self.joinDistance && offset >= followers[follower]?.freshFrom ?? 0
    }

    // MARK: Followers

    mutating func enter(_ follower: FollowerID, at place: Place) { followers[follower] = place }

    /// - Returns: whether it followed.
    mutating func move(_ follower: FollowerID, to offset: Int64, from start: Int64?) -> Bool {
        guard followers[follower] != nil else { return false }
        if let start { followers[follower]?.start = start }
        followers[follower]?.offset = offset
        return true
    }

    /// - Returns: whether it followed.
    mutating func leave(_ follower: FollowerID) -> Bool {
        waiting.remove(follower)
        guard let place = followers.removeValue(forKey: follower) else { return false }
        if isRunning, followers.isEmpty { (departed, wasLeftForGood) = (place, follower.kind.leavesForGood) }
        return true
    }

    // MARK: How far

    /// It brings another stretch than was thought, from its start.
    mutating func begin(_ range: Range<Int64>, isUnresumable: Bool) {
        (self.range, frontier, received) = (range, range.lowerBound, range.lowerBound)
        self.isUnresumable = isUnresumable
    }

    /// The origin has answered: what it is, and which bytes come.
    mutating func opened(_ opening: Opening, _ range: Range<Int64>, furthest: Int64, isUnresumable: Bool) {
        self.opening = opening
        self.furthest = furthest
        begin(range, isUnresumable: isUnresumable)
    }

    mutating func wrote(upTo frontier: Int64) { self.frontier = frontier }

    /// - Returns: whether it pauses now: it has come as far as it goes ahead of who follows it.
    mutating func pauses(received: Int64, writtenTo frontier: Int64) -> Bool {
        (self.received, self.frontier) = (received, frontier)
        guard isAhead(byQuarters: 4) else { return false }
        isPaused = true
        return true
    }

    /// - Returns: whether it was paused, and may go on by now.
    mutating func resumes() -> Bool {
        guard isPaused, isRunning, !isAhead(byQuarters: 3) else { return false }
        isPaused = false
        return true
    }

    /// Up to here it has brought bytes: past the frontier, where they are being written.
    var brought: Int64 { max(received, frontier) }

    /// Whether bytes come in that a player needs soon.
    var isBeingRead: Bool {
        isRunning && !isPaused && followers.contains { $0.key.kind.isPlaying && !isAhead(of: $0.value, byQuarters: 4) }
    }

    /// Whether so many quarters of the window, or more, have been taken in ahead of the furthest follower; of the
    /// slowest, where what it lacks is kept in memory. Where nobody follows any more, whether all has been taken in
    /// that is fetched for one who may come back.
    private func isAhead(byQuarters quarters: Int64) -> Bool {
        guard !followers.isEmpty else {
            return departed.map {
                received - $0.offset >= min(furthest, window.reach(afterLeaving: $0.offset - $0.start))
            } ?? false
        }
        let isBeyond = { isAhead(of: $0, byQuarters: quarters) }
        return spill == nil ? followers.values.allSatisfy(isBeyond) : followers.values.contains(where: isBeyond)
    }

    private func isAhead(of place: Place, byQuarters quarters: Int64) -> Bool {
        received - place.offset >= min(furthest, window.reach(afterReading: place.offset - place.start)) / 4 * quarters
    }
}
