import Synchronization

/// Whether something is still wanted. From any thread.
final class Wish: Sendable {
    private let isOver = Atomic<Bool>(false)

    var holds: Bool { !isOver.load(ordering: .relaxed) }

    func end() { isOver.store(true, ordering: .relaxed) }
}
