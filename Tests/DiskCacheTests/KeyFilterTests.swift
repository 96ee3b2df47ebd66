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
        empty(for: numbers.count)
        for number in numbers { filter.enter(Self.key(number)) }
        filter.endFilling(isComplete: true)
    }

    private func empty(for count: Int) {
        guard let memory = KeyFilter.memory(for: count) else {
            return #expect(Bool(false), "no memory for \(count) keys")
        }
        filter.empty(into: memory)
    }

    @Test func ofTooManyKeysNothingIsKnown() {
        #expect(KeyFilter.memory(for: 1 << 27) == nil)
        #expect(KeyFilter.memory(for: .max) == nil)
    }

    /// Each checkpoint enters the keys of what is being filled.
    @Test func oneKeyCountsOnce() {
        fill(0..<10)
        for _ in 0..<100_000 { filter.enter(Self.key(3)) }
        #expect(filter.certainlyLacks(Self.key(11)))
    }

    @Test func nothingIsSaidBeforeItIsFilled() {
        #expect(!filter.certainlyLacks(Self.key(0)))
        #expect(filter.beginFilling())
        empty(for: 10)
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
        empty(for: 10)
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
        #expect(opened.store.core.index.keys.beginFilling())
        try opened.store.core.index.fillKeys { false }
    }

    /// Pages of eight: five of them, one more key, and less than one.
    @Test(arguments: [40, 41, 3]) func whatIsCachedIsFoundInTheNextSession(count: Int) throws {
        let opened = try OpenStore()
        let media = Media(seed: 1, size: 4096)
        for number in 0..<count { _ = try opened.make("\(number)", media, filling: 0..<4096) }
        let again = try opened.reopened()
        #expect(again.store.core.index.keys.beginFilling())
        try again.store.core.index.fillKeys(keysAtOnce: 8) { false }
        for number in 0..<count {
            #expect(!again.store.certainlyLacks(OpenStore.key("\(number)")))
            #expect(try again.load("\(number)") != nil)
        }
        #expect((count..<count + 100).count { again.store.certainlyLacks(OpenStore.key("\($0)")) } > 90)
    }

    /// Who plays what is cached does not need the filter; who asks for what is not there has it filled.
    @Test func aLookUpInVainHasItFilled() throws {
        let opened = try OpenStore()
        do { _ = try opened.make("a", Media(seed: 1, size: 4096), filling: 0..<4096) }
        let again = try opened.reopened()
        func lookUp(_ name: String) throws -> Bool {
            let found = Monitor<Bool?>(nil)
            again.store.load(OpenStore.key(name)) { result in found.update { $0 = (try? result.get()) != nil } }
            let isThere = try found.wait(for: "the look-up") { $0 }
            again.catchUp()
            return isThere
        }
        #expect(try lookUp("a"))
        #expect(!again.store.certainlyLacks(OpenStore.key("b")))
        #expect(try !lookUp("b"))
        #expect(again.store.certainlyLacks(OpenStore.key("b")))
        #expect(!again.store.certainlyLacks(OpenStore.key("a")))
    }

    /// While all keys are being read, others are saved, evicted and added again.
    @Test func whatIsSavedWhileItIsFilledIsNeverLacking() throws {
        let opened = try OpenStore()
        let media = Media(seed: 1, size: 4096)
        for number in 0..<64 { _ = try opened.make("\(number)", media, filling: 0..<4096) }
        opened.checkpoint()
        #expect(opened.store.core.index.keys.beginFilling())
        var next = 64
        try opened.store.core.index.fillKeys(keysAtOnce: 4) {
            // Between two pages.
            guard next < 90 else { return false }
            _ = try? opened.make("\(next)", media, filling: 0..<4096)
            opened.checkpoint()
            try? opened.store.core.index.removal.remove([OpenStore.key("\(next - 60)")])
            next += 1
            return false
        }
        for number in 30..<next { #expect(!opened.store.core.index.keys.certainlyLacks(OpenStore.key("\(number)"))) }
        #expect((next..<next + 100).count { opened.store.certainlyLacks(OpenStore.key("\($0)")) } > 90)
    }

    /// It is emptied in a transaction while another thread waits to save.
    @Test func whatWaitsToBeSavedWhenItIsEmptiedIsNeverLacking() throws {
        let opened = try OpenStore(), index = opened.store.core.index
        let update = IndexSaving.Update(
            id: opened.store.core.files.makeID(), key: Self.key(7), head: OpenStore.head(), length: 0,
            geometry: OpenStore.small, overhead: 0, hits: 0, extents: [])
        #expect(index.keys.beginFilling())
        let saving = try index.database.write { _ in
            let saving = try Background { try index.saving.save([update], session: 1) }
            try saving.waitUntilItWaits()
            index.keys.empty(into: try #require(KeyFilter.memory(for: 10)))
            return saving
        }
        _ = try saving.value()
        index.keys.endFilling(isComplete: true)
        #expect(!index.keys.certainlyLacks(update.key))
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
        opened.store.queue.sync { _ = $0.closer.closeUnused() }
        #expect(opened.store.openCount == 0)
        #expect(!opened.store.certainlyLacks(OpenStore.key("a")))
    }

    /// It is stopped where the store is closed, and says nothing then.
    @Test func fillingThatIsStoppedLeavesItUnfilled() throws {
        let opened = try OpenStore()
        #expect(opened.store.core.index.keys.beginFilling())
        try opened.store.core.index.fillKeys { true }
        #expect(!opened.store.certainlyLacks(OpenStore.key("a")))
    }
}
