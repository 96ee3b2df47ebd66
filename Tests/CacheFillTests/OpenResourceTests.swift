import CachePolicy
import DiskCache
import HTTPModel
import Logging
import Metrics
import Synchronization
import Testing
import TestSupport
import Upstream

@testable import CacheFill

/// What is known of a resource while it is looked up, and when that changes.
@Suite struct OpenResourceTests {
    private let resource = OpenResource(CacheKey(text: "https://example.com/a"))

    private func view() -> String {
        switch resource.view() {
        case .generation: "generation"
        case .unknown: "unknown"
        case .mustLookUp: "must look up"
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
        let head = UpstreamHead(status: 200, fields: FieldLines(), finalURL: "https://example.com/a", contentLength: 1, receivedAt: 0)
        _ = view()
        resource.lookedUp(.some(nil))
        #expect(resource.idleSince != nil)
        resource.beganTransferOfPlay(from: nil, OngoingPlay.Version(head), at: .max - 1)
        #expect(resource.idleSince == nil)
        resource.endedTransferOfPlay(at: .max)
        #expect(resource.idleSince == .max)
    }

    // MARK: Openings

    private func opening(validating generation: Generation? = nil) -> (FetchStatus, isNew: Bool)? {
        resource.open(FollowerID(), validating: generation) { FetchStatus(range: 0..<Int64.max, horizon: 0, follower: FollowerID(), at: 0) }
    }

    @Test func oneOpensAndOthersFollow() throws {
        let (first, isFirstNew) = try #require(opening())
        let (second, isSecondNew) = try #require(opening())
        #expect(first === second && isFirstNew && !isSecondNew)
        resource.ended(first)
        #expect(try #require(opening()).isNew)
    }

    /// An unsafe method has changed the resource while it was being asked for.
    @Test func whatWasOutdatedIsNotKept() throws {
        let (old, _) = try #require(opening())
        resource.outdateOpening()
        let (new, isNew) = try #require(opening())
        #expect(isNew && new !== old)
        let window = try Window()
        #expect(!resource.opened(window.generation, by: old).isCurrent)
        #expect(view() == "must look up")
        #expect(resource.opened(window.generation, by: new).isCurrent)
        #expect(view() == "generation")
    }

    /// Whoever comes when it is gone must not follow the question about it.
    @Test func questionAboutWhatIsGoneIsNotForTheNext() throws {
        let window = try Window()
        let (first, _) = try #require(opening())
        _ = resource.opened(window.generation, by: first)
        let (question, _) = try #require(opening(validating: window.generation))
        resource.invalidate(window.generation)
        let (next, isNew) = try #require(opening())
        #expect(isNew && next !== question)
        #expect(!resource.opened(window.generation, by: question).isCurrent)
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

/// A generation to play with.
private final class Window {
    let generation: Generation
    private let store: CacheStore
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = StoreConfiguration(directory: directory.path)
        configuration.minFree = 0
        store = try CacheStore(configuration, metrics: ProxyMetrics(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let head = GenerationHead(status: 200, fields: FieldLines(), finalURL: "https://example.com/a", storedAt: 0)
        generation = store.makeWindow(CacheKey(text: "https://example.com/a"), head: head, length: 10)
    }

    deinit {
        do { try store.close() } catch { Issue.record(error) }
    }
}
