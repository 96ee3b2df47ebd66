import CachePolicy
import DiskCache
import Synchronization
import Upstream

/// Identifies a follower of a fetch.
package struct FollowerID: Hashable, Comparable, Sendable {
    /// What the follower is.
    package enum Kind: Sendable {
        /// A reader or a waiting request: a client waits for the bytes.
        case reader
        /// A fill beyond what is read.
        case fill
        /// A download. It retries by itself later, and does not return soon after it has left.
        case download
        /// A prefetch for a player's next request. Downloads make way for it as for a reader. When it has left, it does
        /// not return.
        case ahead

        /// Whether a follower that has left does not return soon.
        var leavesForGood: Bool { self == .download || self == .ahead }

        /// Whether a player needs the bytes soon.
        var isPlaying: Bool { self == .reader || self == .ahead }
    }

    package let kind: Kind
    private let value: UInt64
    private static let next = Atomic<UInt64>(0)

    package init(_ kind: Kind = .reader) {
        self.kind = kind
        value = Self.next.wrappingAdd(1, ordering: .relaxed).newValue
    }

    // Each has another number.
    package func hash(into hasher: inout Hasher) { hasher.combine(value) }

    /// The earlier one is less.
    package static func < (one: FollowerID, other: FollowerID) -> Bool { one.value < other.value }
}

/// What an opening has found.
package enum Opened: Sendable {
    /// The resource's generation, from which everybody may read.
    case stored(Generation)
    /// A response that is not stored: a buffer for the request that started the opening; others send their own.
    /// - part: the range that arrives, if it is not the whole.
    /// - total: the length of the whole; nil if the origin withholds it (`bytes 0-9/*`).
    case passing(Generation, owner: FollowerID, part: Range<Int64>?, total: Int64?)
    /// The stored generation still holds, as the origin answered with this status.
    case validated(Generation, status: Int)
}

/// Whose request an opening sends to the origin, while others wait for its result.
package struct Requester: Sendable {
    package let follower: FollowerID
    /// Several URLs may have one key.
    package let url: String
    /// Whether the origin gets credentials of this client's own.
    package let isAuthorized: Bool
}

/// How a fetch ended.
package enum FetchEnd: Sendable {
    /// Everything wanted has been written.
    case completed
    /// Nobody followed it any more, or it met chunks that are present.
    case stopped
    case failed(FillError)
}

/// The state of one fetch: what it delivers, its progress, and its followers. A value without lock, clock or thread
/// (`ResourceState`).
struct FetchState {
    /// Whether a client that waits for it is another proxy.
    var isJoinedByProxy = false
    /// nil until the origin has stated what the resource is.
    var opening: Opened?
    /// nil for a gap.
    var requester: Requester?
    /// The range that this fetch fills; its upper end is `Int64.max` while the length is unknown.
    private(set) var range: Range<Int64>
    /// Its bytes up to here are in the file.
    private(set) var frontier: Int64
    /// Bytes up to here have been received; those past the frontier are not written yet.
    private(set) var received: Int64
    var end: FetchEnd?
    /// Whether it fills gaps of the current generation, so that others may follow it.
    var isShared: Bool
    /// What the bytes in transit left for it when it paused last, in bytes.
    private var within = Int64.max
    /// Whether it has reached its read-ahead window and waits for its furthest follower.
    private(set) var isPaused = false
    private(set) var followers: [FollowerID: Place] = [:]
    /// Followers to wake at the next news.
    var waiting: Set<FollowerID> = []
    /// The bytes that have arrived while only downloads followed it, and that none of them has counted yet.
    private var forDownloads: Int64 = 0
    /// The last follower's place, once the fetch has no followers.
    private(set) var departed: Place?
    private(set) var wasLeftForGood = false
    /// How far the fetch goes past its furthest follower; past its slowest, once it has spilled.
    let window: ReadAheadWindow
    /// A limit on the window, in bytes: what lies beyond could not be kept.
    var furthest: Int64
    /// Whether its bytes cannot be requested again, so that followers wait for it however far ahead they are: the
    /// origin sends no ranges, or no validator could match another answer to the same version.
    var isUnresumable = false
    var spill: Spill?
    /// Why the store could not take its bytes.
    var obstacle: FillError?
    /// The status of the origin's last answer; nil before the first.
    var answer: Int?
    /// What is for the client alone whose request it forwards.
    var ownersShare: OwnersShare?
    /// Whether its bytes pass through and are stored as a short response.
    var isKeptShort = false
    /// Why its bytes pass through; nil if they are stored, or would be if there were room.
    var passing: Storing.Reason?
    /// The phase of its transfer, or its last phase once that has ended; nil before the first transfer.
    var phase: UpstreamError.Phase?

    /// From `start` on, the bytes go into a buffer in memory, because the store has no room and they cannot be
    /// requested again. The buffer holds only what its slowest follower has yet to read.
    struct Spill: Sendable {
        let buffer: Generation
        let start: Int64
    }

    /// A follower's position.
    struct Place: Equatable, Sendable {
        /// Where it began to read.
        var start: Int64
        var offset: Int64
        /// Bytes before this offset were present before it came, so they were not fetched for it.
        var freshFrom: Int64 = 0
    }

    /// A follower at most this far ahead of the frontier waits for the fetch; one further ahead gets its own.
    static let joinDistance: Int64 = 1 << 20

    init(range: Range<Int64>, _ reach: ResourceState.Reach, isShared: Bool) {
        (self.range, frontier, received) = (range, range.lowerBound, range.lowerBound)
        (window, furthest, self.isShared) = (reach.window, reach.furthest, isShared)
    }

    var isRunning: Bool { end == nil }
    /// Whether others may follow it.
    var isJoinable: Bool { isShared && isRunning }
    var isAbandoned: Bool { followers.isEmpty }

    /// Whether all its followers are downloads.
    var isForDownloads: Bool { !followers.isEmpty && hasOnlyDownloads }

    var hasOnlyDownloads: Bool { followers.keys.allSatisfy { $0.kind == .download } }

    /// The offset of the follower that is furthest behind; nil without followers.
    var slowestFollower: Int64? { followers.values.lazy.map(\.offset).min() }

    // MARK: Bytes

    /// Whether it will deliver bytes of a chunk, soon enough to wait for them.
    func delivers(_ chunk: Range<Int64>) -> Bool { frontier < chunk.upperBound && reaches(chunk) }

    /// The same, or it has just delivered them and they are not written yet.
    func reaches(_ chunk: Range<Int64>) -> Bool {
        isRunning && range.overlaps(chunk)
            && (isUnresumable || chunk.lowerBound - frontier <= Self.joinDistance)
    }

    /// Whether it delivered the present byte at `offset` for a follower. The byte may be present before the frontier
    /// has moved.
    func hasDelivered(_ offset: Int64, to follower: FollowerID) -> Bool {
        range.contains(offset) && offset - frontier < Self.joinDistance && offset >= followers[follower]?.freshFrom ?? 0
    }

    // MARK: Followers

    mutating func enter(_ follower: FollowerID, at place: Place) { followers[follower] = place }

    /// - Returns: whether it was a follower.
    mutating func move(_ follower: FollowerID, to offset: Int64, from start: Int64?) -> Bool {
        guard let place = followers.index(forKey: follower) else { return false }
        if let start { followers.values[place].start = start }
        followers.values[place].offset = offset
        return true
    }

    /// - Returns: whether it was a follower.
    mutating func leave(_ follower: FollowerID) -> Bool {
        waiting.remove(follower)
        guard let place = followers.removeValue(forKey: follower) else { return false }
        if isRunning, followers.isEmpty { (departed, wasLeftForGood) = (place, follower.kind.leavesForGood) }
        return true
    }

    // MARK: Progress

    /// It delivers another range than expected, from that range's start.
    mutating func begin(_ range: Range<Int64>, isUnresumable: Bool) {
        (self.range, frontier, received) = (range, range.lowerBound, range.lowerBound)
        self.isUnresumable = isUnresumable
    }

    /// The origin has answered: what the resource is, and which bytes follow.
    mutating func opened(_ opening: Opened, _ range: Range<Int64>, furthest: Int64, isUnresumable: Bool) {
        self.opening = opening
        self.furthest = furthest
        // What may be dropped behind its readers is kept until they say where they begin: at 0 where the range is not
        // honoured, as it is not while the length is unknown.
        let isPassing = if case .passing = opening { true } else { false }
        if isPassing || range.upperBound == .max {
            for follower in Array(followers.keys) { _ = move(follower, to: range.lowerBound, from: range.lowerBound) }
        }
        begin(range, isUnresumable: isUnresumable)
    }

    mutating func wrote(upTo frontier: Int64) { self.frontier = frontier }

    /// The bytes that have arrived for downloads alone since the last call: of several downloads, one counts them.
    mutating func takeForDownloads() -> Int64 {
        defer { forDownloads = 0 }
        return forDownloads
    }

    /// Further bytes are here.
    /// - Parameters:
    ///   - count: how many, besides those that were received before.
    ///   - within: another limit on the window, in bytes.
    /// - Returns: whether it pauses instead of taking them, because it has reached its window.
    mutating func pauses(received: Int64, writtenTo frontier: Int64, before count: Int, within: Int64) -> Bool {
        (self.received, self.frontier, self.within) = (received, frontier, within)
        guard isAhead(byQuarters: 4) else {
            if isForDownloads { forDownloads += Int64(count) }
            return false
        }
        isPaused = true
        return true
    }

    /// - Returns: whether it was paused and may resume.
    mutating func resumes() -> Bool {
        guard isPaused, isRunning, !isAhead(byQuarters: 3) else { return false }
        isPaused = false
        return true
    }

    /// Its bytes up to here have arrived, those that are still being written included.
    var delivered: Int64 { max(received, frontier) }

    /// Whether it delivers bytes that a player needs soon.
    var isBeingRead: Bool {
        isRunning && !isPaused && followers.contains { $0.key.kind.isPlaying && !isAhead(of: $0.value, byQuarters: 4) }
    }

    /// Whether at least this many quarters of the window have been received ahead of the furthest follower; of the
    /// slowest, if the bytes are in a buffer in memory. Without followers: whether everything has been received that is
    /// fetched in case one returns.
    private func isAhead(byQuarters quarters: Int64) -> Bool {
        guard !followers.isEmpty else {
            return departed.map {
                received - $0.offset >= min(furthest, window.reach(afterLeaving: $0.offset - $0.start))
            } ?? false
        }
        // A loop, as a closure would copy this value; it runs for each piece that comes.
        for place in followers.values where isAhead(of: place, byQuarters: quarters) == (spill != nil) {
            return spill != nil
        }
        return spill == nil
    }

    private func isAhead(of place: Place, byQuarters quarters: Int64) -> Bool {
        let reach = min(furthest, within, window.reach(afterReading: place.offset - place.start))
        return received - place.offset >= reach / 4 * quarters
    }
}
