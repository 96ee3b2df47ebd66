import HTTPModel
import Synchronization

/// How much a text may cost, earned by the bytes that came. All that is done with it (parsing, rewriting, listing,
/// matching) draws from a budget, or ends with one line that says so.
///
///     step      a byte that is read, four that are copied, or an element, however small
///     memory    bytes that are made of others: references resolved, variables replaced, addresses rewritten
///
/// From any thread, but only one at a time works within it.
package final class WorkBudget: Sendable {
    /// Real documents take 2 to 8 steps for each of their bytes; the free ones are some milliseconds.
    package static let stepsPerByte = 64, freeSteps = 1 << 20
    /// A line of a real playlist or feed becomes at most about forty times as long: a short name below a signed path
    /// of a kilobyte. In all, no more than `mostMemory`.
    package static let memoryPerByte = 64, freeMemory = 64 << 10, mostMemory = 32 << 20

    private let length: Atomic<Int>, bound: Int?
    private let owner: WorkBudget?
    private let used = Atomic<Int>(0), grown = Atomic<Int>(0)
    private let isOver = Atomic<Bool>(false)

    /// - Parameters:
    ///   - length: the bytes of the text, without a content coding.
    ///   - owner: a budget with which this one is cancelled.
    package convenience init(bytes length: Int, of owner: WorkBudget? = nil) { self.init(length, nil, owner) }

    private init(_ length: Int, _ bound: Int?, _ owner: WorkBudget?) {
        self.length = Atomic(length)
        (self.bound, self.owner) = (bound, owner)
    }

    /// What a request on a loop may cost: a look-up by hash, and the comparison with what it finds.
    package static var ofMatch: WorkBudget { WorkBudget(0, 64 << 10, nil) }

    /// The steps so far.
    package var steps: Int { used.load(ordering: .relaxed) }
    /// The bytes made so far.
    package var made: Int { grown.load(ordering: .relaxed) }

    /// Adds what further bytes earn.
    package func earn(_ bytes: Int) { length.add(bytes, ordering: .relaxed) }

    /// Ends the work, as nobody waits for it any more: its next step fails.
    package func cancel() { isOver.store(true, ordering: .relaxed) }

    package var isCancelled: Bool { isOver.load(ordering: .relaxed) || owner?.isCancelled == true }

    /// Counts steps before they are made.
    /// - Throws: if there are no more, or nobody waits any more.
    package func take(_ steps: Int = 1) throws(PlaylistError) {
        assert(HeldLocks.areNone, "foreign work under a lock")
        let all = used.load(ordering: .relaxed) &+ steps
        used.store(all, ordering: .relaxed)
        guard !isCancelled else { throw PlaylistError(.cancelled, "nobody waits for the playlist any more") }
        guard all <= bound ?? (bytes &* Self.stepsPerByte &+ Self.freeSteps) else { throw spent("work") }
    }

    /// Counts bytes that are made of others, and the steps to make them.
    package func make(_ bytes: Int) throws(PlaylistError) {
        let all = grown.load(ordering: .relaxed) &+ bytes
        grown.store(all, ordering: .relaxed)
        try take(bytes / 4)
        guard all <= min(Self.mostMemory, self.bytes &* Self.memoryPerByte &+ Self.freeMemory) else {
            throw spent("memory")
        }
    }

    private var bytes: Int { length.load(ordering: .relaxed) }

    private func spent(_ what: String) -> PlaylistError {
        PlaylistError(.tooLarge, "the playlist takes more \(what) than its \(bytes) bytes allow")
    }
}

extension WorkBudget {
    func take(ofFeed steps: Int) throws(FeedError) {
        do throws(PlaylistError) { try take(steps) } catch { throw FeedError(error) }
    }
}
