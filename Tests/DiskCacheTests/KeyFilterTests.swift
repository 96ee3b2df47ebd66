import CachePolicy
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

/// What is certainly not cached need not be looked up. What is cached must never be taken for that.
@Suite struct KeyFilterTests {
    private let filter = KeyFilter()

    private static func key(_ number: Int) -> CacheKey { CacheKey(text: "https://example.com/\(number)") }

    private func fill(_ numbers: Range<Int>) {
        #expect(filter.beginFilling())
        filter.empty(for: numbers.count)
        for number in numbers { filter.enter(Self.key(number)) }
        filter.endFilling(isComplete: true)
    }

    @Test func nothingIsSaidBeforeItIsFilled() {
        #expect(!filter.certainlyLacks(Self.key(0)))
        #expect(filter.beginFilling())
        filter.empty(for: 10)
        #expect(!filter.certainlyLacks(Self.key(0)))
        filter.endFilling(isComplete: true)
        #expect(filter.certainlyLacks(Self.key(0)))
    }

    @Test func whatWasEnteredIsNeverLackingAndOfOthersNearlyAllAre() {
        fill(0..<50_000)
        #expect(!(0..<50_000).contains { filter.certainlyLacks(Self.key($0)) })
        let taken = (50_000..<150_000).count { !filter.certainlyLacks(Self.key($0)) }
        #expect(taken < 1000, "of 100,000")
    }

    @Test func whatIsWrittenWhileItIsFilledIsInIt() {
        #expect(filter.beginFilling())
        filter.empty(for: 10)
        filter.enter(Self.key(7))
        filter.endFilling(isComplete: true)
        filter.enter(Self.key(8))
        #expect(!filter.certainlyLacks(Self.key(7)) && !filter.certainlyLacks(Self.key(8)))
        #expect(filter.certainlyLacks(Self.key(9)))
    }

    /// It is filled once at a time, and not again where it was in vain.
    @Test func oneFillsIt() {
        #expect(filter.beginFilling())
        #expect(!filter.beginFilling())
        filter.endFilling(isComplete: false)
        #expect(!filter.beginFilling())
        #expect(!filter.certainlyLacks(Self.key(0)))
    }

    @Test func moreThanItIsMadeForHasItFilledAnew() {
        fill(0..<10)
        var next = 10
        while filter.certainlyLacks(Self.key(-1)), next < 1 << 20 {
            filter.enter(Self.key(next))
            next += 1
        }
        #expect(!filter.certainlyLacks(Self.key(-1)))
        fill(0..<next)
        #expect(!(0..<next).contains { filter.certainlyLacks(Self.key($0)) })
        #expect(filter.certainlyLacks(Self.key(-2)) || filter.certainlyLacks(Self.key(-3)))
    }
}

/// The filter beside an index.
extension KeyFilterTests {
    private func fill(_ opened: OpenStore) throws {
        #expect(opened.store.index.keys.beginFilling())
        try opened.store.index.fillKeys { false }
    }

    @Test func whatIsCachedIsFoundInTheNextSession() throws {
        let opened = try OpenStore()
        let media = Media(seed: 1, size: 4096)
        // More than a page of them.
        for number in 0..<40 { _ = try opened.make("\(number)", media, filling: 0..<4096) }
        let again = try opened.reopened()
        try fill(again)
        for number in 0..<40 {
            #expect(!again.store.certainlyLacks(OpenStore.key("\(number)")))
            #expect(try again.load("\(number)") != nil)
        }
        #expect((40..<140).count { again.store.certainlyLacks(OpenStore.key("\($0)")) } > 90)
    }

    /// From when it is made to long after it was saved and closed.
    @Test func whatIsMadeIsNeverLacking() throws {
        let opened = try OpenStore()
        try fill(opened)
        #expect(opened.store.certainlyLacks(OpenStore.key("a")))
        do {
            let generation = try opened.make("a", Media(seed: 1, size: 4096), filling: 0..<4096)
            #expect(!opened.store.certainlyLacks(OpenStore.key("a")))
            _ = generation
        }
        opened.checkpoint()
        opened.store.queue.sync { _ = opened.store.closeUnused() }
        #expect(opened.store.openCount == 0)
        #expect(!opened.store.certainlyLacks(OpenStore.key("a")))
    }

    /// It is stopped where the store is closed, and says nothing then.
    @Test func fillingThatIsStoppedLeavesItUnfilled() throws {
        let opened = try OpenStore()
        #expect(opened.store.index.keys.beginFilling())
        try opened.store.index.fillKeys { true }
        #expect(!opened.store.certainlyLacks(OpenStore.key("a")))
    }
}
