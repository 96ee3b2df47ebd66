import Synchronization

/// Whether some work is still needed. From any thread.
final class Wish: Sendable {
    private let isOver = Atomic<Bool>(false)

    var holds: Bool { !isOver.load(ordering: .relaxed) }

    func end() { isOver.store(true, ordering: .relaxed) }
}
