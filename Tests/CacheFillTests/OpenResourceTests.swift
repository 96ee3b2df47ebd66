import CachePolicy
import Synchronization
import Testing

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
