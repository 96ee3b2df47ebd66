import CachePolicy
import DiskCache
import Testing

@testable import CacheFill

/// Who fetches what: the one decision about bytes that are not there. A letter is a chunk of 4 KiB in these pictures:
///
///     X present   - absent
@Suite struct ResourceStateTests {
    private let geometry = ChunkGeometry(chunkSize: 4096)!
    private let chunk: Int64 = 4096
    private let window = ReadAheadWindow(limit: 32 << 20)
    private let reader = FollowerID()
    private let other = FollowerID()
    private let fill = FollowerID(.fill)
    private let download = FollowerID(.download)
    private let buffer: PassThroughBuffer
    private var state = ResourceState()

    init() throws { buffer = try PassThroughBuffer() }

    /// What has been answered, in words.
    private enum Found: Equatable {
        case present, lost, unsettled, passing, failed
        case coming(FetchState.ID)
        /// In chunks.
        case toFetch(Range<Int64>)
    }

    private func chunks(_ range: Range<Int64>) -> Range<Int64> { range.lowerBound * chunk..<range.upperBound * chunk }

    private var reach: ResourceState.Reach { ResourceState.Reach(window: window, furthest: .max) }

    private func presence(_ picture: String) -> ResourceState.Presence {
        let present = picture.map { $0 == "X" }
        let isPresent = { (index: Int64) in index < present.count && present[Int(index)] }
        return ResourceState.Presence(geometry: geometry) { range in
            let rounded = geometry.roundedOut(range, length: Int64(present.count) * chunk)
            let all = rounded.lowerBound / chunk..<rounded.upperBound / chunk
            guard let first = all.first(where: { !isPresent($0) }) else { return nil }
            return chunks(first..<(all.first { $0 > first && isPresent($0) } ?? all.upperBound))
        }
    }

    /// Asks for the byte at `offset`, and for all up to the end of the picture.
    private mutating func locate(
        _ offset: Int64, in picture: String, for follower: FollowerID? = nil, following followed: FetchState.ID? = nil,
        isFetchable: Bool = true, isCurrent: Bool = true
    ) -> Found {
        let request = ResourceState.Request(
            follower: follower ?? reader, offset: offset,
            chunk: geometry.chunkBytes(geometry.chunk(at: offset), length: nil),
            end: Int64(picture.count) * chunk, followed: followed)
        let isThere = Array(picture)[Int(offset / chunk)] == "X"
        let found = state.locate(
            request, isCurrent: isCurrent, in: buffer.generation, presence(picture), isThere: { isThere },
            reach: { [reach] in isFetchable ? reach : nil })
        switch found {
        case .present: return .present
        case .coming(let id, nil): return .coming(id)
        case .coming(_, let gap?): return .toFetch(gap.lowerBound / chunk..<gap.upperBound / chunk)
        case .passing: return .passing
        case .failed: return .failed
        case .lost: return .lost
        case .unsettled: return .unsettled
        }
    }

    /// A fetch for a gap that another follower asked for, and its identifier.
    private mutating func fetching(_ range: Range<Int64>, in picture: String, for follower: FollowerID? = nil) throws
        -> FetchState.ID
    {
        let before = Set(state.fetches.map(\.id))
        #expect(locate(range.lowerBound * chunk, in: picture, for: follower ?? other) == .toFetch(range))
        return try #require(state.fetches.first { !before.contains($0.id) }?.id)
    }

    // MARK: Where bytes are

    @Test mutating func whatIsThereNeedsNoFetch() {
        #expect(locate(5000, in: "-X--") == .present)
        #expect(state.isIdle)
    }

    @Test(arguments: [
        ("----", 0, 0..<4), ("----", 5000, 1..<4), ("X--X", 4096, 1..<3), ("X--X-", 9000, 2..<3),
        ("---X--", 4 * 4096, 4..<6),
    ])
    mutating func whatNobodyBringsIsTheAskersUpToWhatIsThere(picture: String, offset: Int64, gap: Range<Int64>) {
        #expect(locate(offset, in: picture) == .toFetch(gap))
        #expect(state.fetches.count == 1 && state.fetches.first?.state.isAbandoned == false)
    }

    @Test mutating func secondOneFollowsTheFirst() throws {
        let id = try fetching(0..<4, in: "----")
        #expect(locate(0, in: "----") == .coming(id))
        #expect(locate(3 * chunk, in: "----", for: fill) == .coming(id))
        #expect(state.fetches.count == 1)
    }

    @Test mutating func whoIsFarFromTheFrontierHasAFetchOfItsOwn() throws {
        let far = FetchState.joinDistance / chunk + 1, picture = String(repeating: "-", count: Int(far) + 10)
        let id = try fetching(0..<far + 10, in: picture)
        #expect(locate(FetchState.joinDistance, in: picture, for: fill) == .coming(id))
        #expect(locate(far * chunk, in: picture) == .toFetch(far..<far + 10))
    }

    @Test mutating func gapEndsWhereAnotherFetchIs() throws {
        let far = FetchState.joinDistance / chunk + 10, picture = String(repeating: "-", count: Int(far) + 10)
        let id = try fetching(far..<far + 10, in: picture)
        state.ring(id) { $0.wrote(upTo: (far + 1) * chunk + 1) }
        #expect(locate(0, in: picture) == .toFetch(0..<far + 1))
    }

    /// What it brings in the middle of a chunk is there for readers by the claim of its writer; until then they wait
    /// for it, and ask for nothing.
    @Test mutating func chunkInProgressIsWaitedFor() throws {
        let id = try fetching(0..<4, in: "----")
        state.ring(id) { $0.wrote(upTo: chunk + 100) }
        #expect(locate(chunk + 50, in: "X---") == .coming(id))
    }

    /// A frontier is behind it, and yet it is absent: what came was evicted, and does not come again by this one.
    @Test mutating func whatCameByAndIsGoneIsFetchedAgain() throws {
        let id = try fetching(0..<4, in: "----", for: reader)
        state.ring(id) { $0.wrote(upTo: 2 * chunk) }
        #expect(locate(0, in: "-X--", following: id) == .toFetch(0..<1))
        #expect(state.takeActions().contains(.notify(id, .considerStopping)))
    }

    @Test mutating func ofAnotherGenerationNothingIsFetched() throws {
        let id = try fetching(0..<4, in: "----")
        #expect(locate(0, in: "----", isCurrent: false) == .lost)
        // What is followed already brings its own all the same.
        #expect(locate(0, in: "----", for: other, following: id, isCurrent: false) == .coming(id))
    }

    @Test mutating func whatCannotBeAskedForIsLostUnlessItIsOnItsWay() throws {
        #expect(locate(0, in: "----", isFetchable: false) == .lost)
        let id = try fetching(0..<4, in: "----")
        #expect(locate(0, in: "----", isFetchable: false) == .coming(id))
    }

    /// The chunk was completed after the byte had been looked for.
    @Test mutating func whatHasChangedMeanwhileIsLookedForOnceMore() {
        let request = ResourceState.Request(follower: reader, offset: 0, chunk: 0..<chunk, end: chunk)
        let presence = ResourceState.Presence(geometry: geometry, gap: { _ in nil })
        let found = state.locate(
            request, isCurrent: true, in: buffer.generation, presence, isThere: { false }, reach: { [reach] in reach })
        guard case .unsettled = found else { return #expect(Bool(false)) }
        #expect(state.isIdle)
    }

    /// A short 206: what is beyond its end is asked for when it has come to that, not beside it in the same chunk.
    @Test mutating func chunkInWhichAFetchIsAboutToEndIsWaitedFor() throws {
        let id = try fetching(0..<4, in: "----")
        state.ring(id) { fetch in
            fetch.begin(0..<chunk + 1000, isUnresumable: false)
            fetch.wrote(upTo: chunk + 500)
        }
        #expect(locate(chunk + 2000, in: "X---") == .coming(id))
        state.ended(id, .completed)
        #expect(locate(chunk + 2000, in: "X---", following: id) == .toFetch(1..<4))
    }

    @Test mutating func failureOfWhatIsFollowedIsTheAnswerOnce() throws {
        let id = try fetching(0..<4, in: "----", for: reader)
        state.ended(id, .failed(.offline))
        #expect(locate(0, in: "----", following: id) == .failed)
        #expect(state.isIdle)
        #expect(locate(0, in: "----") == .toFetch(0..<4))
    }

    @Test(arguments: [FetchEnd.completed, .stopped])
    mutating func whatEndedBeforeIsFetchedAnew(end: FetchEnd) throws {
        let id = try fetching(0..<4, in: "----", for: reader)
        state.ended(id, end)
        #expect(locate(0, in: "----", following: id) == .toFetch(0..<4))
    }

    @Test mutating func whatGoesOnInABufferIsReadThere() throws {
        let (id, spill) = (try fetching(0..<4, in: "----", for: reader), try PassThroughBuffer())
        state.ring(id) { fetch in
            fetch.wrote(upTo: chunk)
            fetch.spill = FetchState.Spill(buffer: spill.generation, start: chunk)
        }
        #expect(locate(chunk, in: "X---", following: id) == .passing)
        // Before it, nothing has changed.
        #expect(locate(0, in: "XX--", following: id) == .present)
    }

    // MARK: Openings

    private mutating func opening(for follower: FollowerID) -> FetchState.ID {
        state.enter(0..<Int64.max, reach, follower, at: 0, isOpening: true)
    }

    @Test mutating func openingIsFollowedUntilItHasOpened() {
        let id = opening(for: reader)
        #expect(state.followOpening(other) == id)
        #expect(state.becomesCurrent(id) == true)
        state.ring(id) { $0.opened(.stored(buffer.generation), 0..<4 * chunk, furthest: .max, isUnresumable: false) }
        #expect(state.followOpening(fill) == nil)
        // But as one that brings bytes.
        #expect(locate(0, in: "----", for: fill) == .coming(id))
    }

    @Test mutating func whatOneAskedForAloneIsNobodyElses() {
        let id = state.enter(0..<4 * chunk, reach, other, at: 0, isOpening: false)
        #expect(state.followOpening(reader) == nil)
        #expect(state.becomesCurrent(id) == false)
        #expect(locate(0, in: "----") == .toFetch(0..<4))
    }

    @Test mutating func whatPassesIsFollowedByThoseOnlyWhoDidBefore() {
        let id = opening(for: reader)
        state.passes(id)
        state.ring(id) {
            $0.opened(
                .passing(buffer.generation, owner: reader, part: nil, total: nil), 0..<4 * chunk, furthest: .max,
                isUnresumable: true)
        }
        #expect(state.followOpening(other) == nil && state.followUnresumable(other, at: 0) == nil)
        #expect(locate(0, in: "----", following: id, isFetchable: false, isCurrent: false) == .coming(id))
    }

    /// Until a client's reader has said that it reads from the beginning, nothing of it is dropped.
    @Test mutating func whatPassesInPlaceOfARangeIsKeptFromItsBeginning() {
        let id = state.enter(480 * chunk..<500 * chunk, reach, reader, at: 480 * chunk, isOpening: true)
        state.passes(id)
        state.ring(id) {
            $0.opened(
                .passing(buffer.generation, owner: reader, part: nil, total: nil), 0..<Int64.max, furthest: .max,
                isUnresumable: true)
        }
        #expect(state.with(id) { $0.slowestFollower } == 0)
    }

    /// The same where it is stored without a length: without room, what all have read is dropped.
    @Test mutating func whatHasNoLengthIsKeptFromItsBeginning() throws {
        let id = state.enter(480 * chunk..<500 * chunk, reach, reader, at: 480 * chunk, isOpening: true)
        let stored = try buffer.makeStored()
        state.ring(id) { $0.opened(.stored(stored), 0..<Int64.max, furthest: .max, isUnresumable: true) }
        #expect(state.with(id) { $0.slowestFollower } == 0)
    }

    @Test mutating func fetchesOfAGenerationThatGoesAreNotForTheNext() throws {
        let id = try fetching(0..<4, in: "----")
        state.forgetGeneration()
        #expect(locate(0, in: "----") == .toFetch(0..<4))
        #expect(state.with(id) { $0.isRunning } == true)
    }

    @Test mutating func fetchThatIsOverIsNotMistakenForALaterOne() throws {
        let first = try fetching(0..<2, in: "--XX"), second = try fetching(3..<4, in: "--X-", for: reader)
        state.ended(first, .completed)
        #expect(state.with(first) { $0.isRunning } == false)
        state.leave(other, first)
        #expect(state.with(first) { $0.range } == nil && state.fetches.count == 1)
        #expect(state.with(second) { $0.range } == 3 * chunk..<4 * chunk)
    }

    // MARK: Lingering

    /// A player that seeks comes back at another place at once.
    @Test mutating func fetchThatWasLeftIsTakenUpWhereAllBeforeItIsThere() throws {
        let id = try fetching(0..<8, in: "--------", for: reader)
        state.ring(id) { $0.wrote(upTo: 4 * chunk) }
        state.leave(reader, id)
        #expect(state.takeActions() == [.wake(reader), .notify(id, .considerStopping)])
        state.lingers(id)
        #expect(state.followLingering(other, chunk..<8 * chunk, presence("XX-X----")) == nil)
        #expect(state.followLingering(other, chunk..<3 * chunk, presence("XXXX----")) == nil)
        #expect(state.followLingering(other, chunk..<8 * chunk, presence("XXXX----")) == id)
        #expect(
            state.with(id) { $0.hasDelivered(2 * chunk, to: other) } == false
                && state.with(id) { $0.hasDelivered(4 * chunk, to: other) } == true)
        // It is somebody's again.
        #expect(state.followLingering(reader, chunk..<8 * chunk, presence("XXXX----")) == nil)
        #expect(state.endsIfAbandoned(id) == false)
    }

    @Test mutating func onlyOneLingers() throws {
        let far = FetchState.joinDistance / chunk + 1, picture = String(repeating: "-", count: 3 * Int(far) + 2)
        let first = try fetching(0..<3 * far + 2, in: picture),
            second = try fetching(far..<3 * far + 2, in: picture, for: reader)
        state.leave(other, first)
        state.lingers(first)
        state.leave(reader, second)
        _ = state.takeActions()
        state.lingers(second)
        #expect(state.lingering == second && state.takeActions() == [.notify(first, .endLinger)])
        // And none where a new one begins.
        _ = try fetching(2 * far + 1..<3 * far + 2, in: picture)
        #expect(
            Set(state.takeActions().map { "\($0)" })
                == Set([first, second].map { "\(ResourceState.Action.notify($0, .endLinger))" }))
        #expect(state.lingering == nil)
    }

    @Test mutating func fetchEndsWithItsLastFollowerOnly() throws {
        let id = try fetching(0..<4, in: "----", for: reader)
        #expect(locate(0, in: "----", for: other) == .coming(id))
        state.leave(reader, id)
        #expect(state.takeActions().isEmpty && !state.endsIfAbandoned(id))
        state.leave(other, id)
        #expect(state.takeActions() == [.notify(id, .considerStopping)])
        #expect(state.endsIfAbandoned(id) && state.isIdle)
        #expect(state.endsIfAbandoned(id) == false)
    }

    /// It would bring what nobody finds, on the line of the next.
    @Test mutating func fetchOfAGenerationThatGoesDoesNotLinger() throws {
        let id = try fetching(0..<8, in: "--------", for: reader)
        state.leave(reader, id)
        state.lingers(id)
        _ = state.takeActions()
        state.forgetGeneration()
        #expect(state.takeActions() == [.notify(id, .endLinger)] && state.lingering == nil)
    }

    // MARK: What is told

    @Test mutating func whoWaitsIsWokenOnce() throws {
        let id = try fetching(0..<4, in: "----", for: reader)
        state.ring(id) { $0.wrote(upTo: 10) }
        #expect(state.takeActions() == [.wake(reader)])
        state.ring(id) { $0.wrote(upTo: 20) }
        #expect(state.takeActions().isEmpty)
    }

    @Test(arguments: [(FollowerID.Kind.reader, true), (.fill, true), (.download, false)])
    mutating func whoWaitsForWhatDownloadsAskedForHurriesIt(kind: FollowerID.Kind, hurries: Bool) throws {
        let id = try fetching(0..<4, in: "----", for: download)
        #expect(locate(0, in: "----", for: FollowerID(kind)) == .coming(id))
        #expect(state.takeActions() == (hurries ? [.notify(id, .hurry)] : []))
        // It is in a hurry already.
        #expect(locate(0, in: "----", for: FollowerID(.reader)) == .coming(id))
        #expect(state.takeActions() == (hurries ? [] : [.notify(id, .hurry)]))
    }

    @Test mutating func pausedFetchGoesOnForWhoComesFurther() throws {
        let many = 4 * Int(ReadAheadWindow.first / chunk),
            id = try fetching(0..<Int64(many), in: String(repeating: "-", count: many), for: reader)
        #expect(state.pauses(id, received: ReadAheadWindow.first - 1, writtenTo: 0, before: 0) == false)
        #expect(state.pauses(id, received: ReadAheadWindow.first, writtenTo: ReadAheadWindow.first, before: 0) == true)
        #expect(state.with(id) { $0.isBeingRead } == false)
        state.advance(reader, id, to: 1000)
        #expect(state.takeActions().isEmpty)
        state.advance(reader, id, to: ReadAheadWindow.first)
        #expect(state.takeActions() == [.notify(id, .proceed)])
        // Once.
        state.advance(reader, id, to: ReadAheadWindow.first + 1)
        #expect(state.takeActions().isEmpty)
    }

    /// The slowest one counts where what it lacks is kept in memory only.
    @Test mutating func whatIsKeptInMemoryWaitsForTheSlowest() throws {
        let many = 8 * Int(ReadAheadWindow.first / chunk), picture = String(repeating: "-", count: many)
        let id = try fetching(0..<Int64(many), in: picture, for: reader)
        #expect(locate(0, in: picture, for: other) == .coming(id))
        state.advance(other, id, to: ReadAheadWindow.first)
        #expect(state.pauses(id, received: ReadAheadWindow.first, writtenTo: ReadAheadWindow.first, before: 0) == false)
        let spill = try PassThroughBuffer()
        state.ring(id) { $0.spill = FetchState.Spill(buffer: spill.generation, start: 0) }
        #expect(state.pauses(id, received: ReadAheadWindow.first, writtenTo: ReadAheadWindow.first, before: 0) == true)
    }
}
