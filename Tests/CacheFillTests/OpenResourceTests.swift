import Activity
import CachePolicy
import DiskCache
import HTTPModel
import Logging
import Synchronization
import TestSupport
import Testing
import Upstream

@testable import CacheFill

/// What is known of a resource while it is looked up, and when that changes.
@Suite struct OpenResourceTests {
    private let resource = OpenResource(CacheKey(text: "https://example.com/a"))
    private static let reach = ResourceState.Reach(window: ReadAheadWindow(limit: 0), furthest: 0)

    private func view() -> String {
        switch resource.view() {
        case .generation: "generation"
        case .unknown: "unknown"
        case nil: "must look up"
        case .lookingUp: "looking up"
        case .unreadable: "unreadable"
        }
    }

    @Test func oneLooksUpAndOthersWait() {
        #expect(view() == "must look up")
        #expect(view() == "looking up")
        let woken = Atomic(0)
        resource.whenLookedUp { woken.add(1, ordering: .relaxed) }
        resource.lookedUp(.some(nil))
        #expect(woken.load(ordering: .relaxed) == 1)
        #expect(view() == "unknown")
    }

    /// Nothing may take the place of what is perhaps there; the next request tries again.
    @Test func whatCannotBeReadIsNotUnknown() {
        _ = resource.view()
        resource.lookedUp(nil)
        #expect(view() == "unreadable")
        #expect(view() == "must look up")
    }

    @Test func changeWhileItIsLookedUpMakesTheAnswerAnOldOne() {
        _ = resource.view()
        resource.lookAgain(after: nil)
        resource.lookedUp(.some(nil))
        #expect(view() == "must look up")
    }

    /// The end of a transfer comes while its beginning is being pinned, and there was nothing to pin yet.
    @Test func pinningIsTriedAgainWhereThereIsMoreByThen() {
        #expect(resource.beginPinning())
        #expect(!resource.beginPinning())
        #expect(resource.endPinning(isPinned: false))
        #expect(!resource.endPinning(isPinned: true))
        #expect(!resource.beginPinning())
    }

    // MARK: Plays

    /// What passes by: the play would be forgotten with the resource.
    @Test func resourceOfAPlayIsNotIdleWhileItsTransferRuns() {
        let head = UpstreamHead(
            status: 200, fields: HeaderFields(), finalURL: "https://example.com/a", contentLength: 1, receivedAt: 0)
        _ = view()
        resource.lookedUp(.some(nil))
        #expect(resource.idleSince != nil)
        resource.beganTransferOfPlay(from: nil, OngoingPlay.Version(head), at: .max - 1)
        #expect(resource.idleSince == nil)
        resource.endedTransferOfPlay(at: .max)
        #expect(resource.idleSince == .max)
    }

    // MARK: Openings

    private func opening(validating generation: Generation? = nil) -> (SharedFetch, isNew: Bool)? {
        resource.open(FollowerID(), validating: generation, 0..<Int64.max, Self.reach)
    }

    private func found(_ generation: Generation, by fetch: SharedFetch) -> Bool {
        resource.opened(generation, by: fetch, 0..<10, furthest: 0, isUnresumable: false).isCurrent
    }

    @Test func oneOpensAndOthersFollow() throws {
        let (first, isFirstNew) = try #require(opening())
        let (second, isSecondNew) = try #require(opening())
        #expect(first == second && isFirstNew && !isSecondNew)
        first.ended(.stopped)
        #expect(try #require(opening()).isNew)
    }

    /// An unsafe method has changed the resource while it was being asked for.
    @Test func whatWasOutdatedIsNotKept() throws {
        let (old, _) = try #require(opening())
        resource.outdateOpening()
        let (new, isNew) = try #require(opening())
        #expect(isNew && new != old)
        let buffer = try PassThroughBuffer()
        #expect(!found(buffer.generation, by: old))
        #expect(view() == "must look up")
        #expect(found(buffer.generation, by: new))
        #expect(view() == "generation")
    }

    /// Whoever comes when it is gone must not follow the question about it.
    @Test func questionAboutWhatIsGoneIsNotForTheNext() throws {
        let buffer = try PassThroughBuffer()
        let (first, _) = try #require(opening())
        #expect(found(buffer.generation, by: first))
        let (question, _) = try #require(opening(validating: buffer.generation))
        resource.invalidate(buffer.generation)
        let (next, isNew) = try #require(opening())
        #expect(isNew && next != question)
        #expect(!found(buffer.generation, by: question))
    }

    /// Between the view and the waiting, the look-up may end and be undone: nobody would wake who waits then.
    @Test func whoeverWaitsWhereNobodyLooksUpIsWokenAtOnce() {
        _ = resource.view()
        #expect(view() == "looking up")
        resource.lookedUp(.some(nil))
        resource.lookAgain(after: nil)
        let woken = Atomic(0)
        resource.whenLookedUp { woken.add(1, ordering: .relaxed) }
        #expect(woken.load(ordering: .relaxed) == 1)
    }
}

// MARK: - What is told

extension OpenResourceTests {
    /// Whoever is told is told once, and nobody who has left is.
    @Test func newsOfAFetchWakeThoseWhoWait() throws {
        let (fetch, _) = try #require(opening())
        let (stays, leaves) = (try follower(of: fetch), try follower(of: fetch))
        fetch.leave(leaves.id)
        fetch.note { $0.answer = 200 }
        #expect(stays.woken.load(ordering: .relaxed) == 0)
        fetch.ring { $0.wrote(upTo: 5) }
        fetch.ring { $0.wrote(upTo: 6) }
        #expect(stays.woken.load(ordering: .relaxed) == 1 && leaves.woken.load(ordering: .relaxed) == 0)
    }

    @Test func whatIsThereAlreadyIsNotWaitedFor() throws {
        let (fetch, _) = try #require(opening())
        let follower = FollowerID()
        fetch.ring { $0.wrote(upTo: 5) }
        #expect(!fetch.wait(follower, at: 4) {} && fetch.wait(follower, at: 5) {})
        fetch.ended(.completed)
        #expect(!fetch.wait(follower, at: 5) {})
    }

    /// What ended stays known to those who have yet to look, and to nobody else.
    @Test func endIsKnownUntilTheLastHasSeenIt() throws {
        let follower = FollowerID()
        let (fetch, _) = try #require(resource.open(follower, validating: nil, 0..<10, Self.reach))
        fetch.ended(.failed(.offline))
        guard case .ended(.failed(.offline), _) = fetch.view else { return #expect(Bool(false), "\(fetch.view)") }
        #expect(resource.idleSince == nil)
        fetch.leave(follower)
        guard case .ended(.stopped, _) = fetch.view else { return #expect(Bool(false), "\(fetch.view)") }
        #expect(resource.idleSince != nil)
    }

    /// Between the look at the bytes and the waiting there is no moment in which news could be missed.
    @Test func whoIsToldThatAByteIsComingIsWoken() throws {
        let buffer = try PassThroughBuffer()
        let (fetch, _) = try #require(opening())
        #expect(found(buffer.generation, by: fetch))
        let woken = Atomic(0), reader = FollowerID()
        let request = ResourceState.Request(follower: reader, offset: 3, chunk: 0..<10, end: 10)
        let look = { (isThere: Bool, isFetchable: Bool) in
            resource.locate(
                request, in: buffer.generation, isThere: { isThere }, reach: { isFetchable ? Self.reach : nil },
                wake: { woken.add(1, ordering: .relaxed) })
        }
        guard case .coming(let id, nil) = look(false, false) else { return #expect(Bool(false)) }
        #expect(id == fetch.id && woken.load(ordering: .relaxed) == 0)
        fetch.ring { $0.wrote(upTo: 5) }
        #expect(woken.load(ordering: .relaxed) == 1)
        guard case .present = look(true, false) else { return #expect(Bool(false)) }
        fetch.ring { $0.wrote(upTo: 6) }
        #expect(woken.load(ordering: .relaxed) == 1)
    }

    /// It has been removed, and the resource is about to hear of it: no origin is asked for what would be thrown away.
    @Test func ofWhatHasBeenRemovedNothingIsFetched() throws {
        let buffer = try PassThroughBuffer(), stored = try buffer.makeStored()
        let (fetch, _) = try #require(opening())
        #expect(found(stored, by: fetch))
        fetch.ended(.stopped)
        let look = {
            resource.locate(
                ResourceState.Request(follower: FollowerID(), offset: 3, chunk: 0..<10, end: 10), in: stored,
                isThere: { false },
                reach: { Self.reach }, wake: {})
        }
        guard case .coming(_, .some) = look() else { return #expect(Bool(false)) }
        buffer.retire(stored)
        guard case .lost = look() else { return #expect(Bool(false)) }
    }

    private final class Waiting: Sendable {
        let id = FollowerID()
        let woken = Atomic(0)
    }

    private func follower(of fetch: SharedFetch) throws -> Waiting {
        let waiting = Waiting()
        try #require(resource.joinOpening(waiting.id) == fetch)
        #expect(fetch.wait(waiting.id, at: nil) { waiting.woken.add(1, ordering: .relaxed) })
        return waiting
    }
}
