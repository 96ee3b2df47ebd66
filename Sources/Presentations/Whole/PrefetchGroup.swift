import CacheFill
import EventIO

/// Items that are fetched together.
struct PresentationParts {
    /// The next item; nil at the end.
    let next: () -> PresentationItem?
    /// The number of segments among them; nil if they are not counted.
    let count: Int64?

    init(next: @escaping () -> PresentationItem?, count: Int64?) { (self.next, self.count) = (next, count) }

    init(_ items: [PresentationItem]) {
        var rest = items[...]
        self.init(next: { rest.popFirst() }, count: nil)
    }
}

/// Several prefetches, a few at once: when one ends, the next begins. The group ends when all are done, or with
/// the first failure. Loop-bound.
final class PrefetchGroup {
    enum End {
        case completed
        case failed(PresentationItem, PrefetchError)
    }

    private let loop: LoopFiller
    private let pace: FillPace
    private let connections: Int
    /// Counts the items that arrive; nil if they are not counted.
    private let state: PresentationState?
    private let parts: PresentationParts
    /// The order that fetches an item.
    private let order: (PresentationItem) -> Prefetch.Order
    /// Called for each item that has arrived.
    private var came: ((PresentationItem, PrefetchState) -> Void)?
    private var onEnd: ((End) -> Void)?
    private var running: [ObjectIdentifier: Prefetch] = [:]
    private var hasMore = true
    private var isBeginning = false
    /// Items that are already cached arrive without a wait: after this many, others on the loop get their turn.
    private static let mostInARow = 32

    /// - Parameter connections: how many prefetches run at once, each with one transfer.
    init(
        on loop: LoopFiller, pace: FillPace, connections: Int, state: PresentationState?, _ parts: PresentationParts,
        order: @escaping (PresentationItem) -> Prefetch.Order
    ) {
        (self.loop, self.pace, self.connections, self.state) = (loop, pace, connections, state)
        (self.parts, self.order) = (parts, order)
    }

    /// Starts; neither is called before this returns.
    func start(came: @escaping (PresentationItem, PrefetchState) -> Void, onEnd end: @escaping (End) -> Void) {
        (self.came, onEnd) = (came, end)
        beginLater()
    }

    /// Stops, and keeps the bytes that have arrived.
    func stop() {
        (onEnd, came) = (nil, nil)
        let left = running.values
        running = [:]
        for prefetch in left {
            prefetch.stop()
            state?.left(prefetch.state)
        }
    }

    private func beginLater() { loop.loop.afterCallback { [self] in beginOthers() } }

    private func beginOthers() {
        guard !isBeginning, onEnd != nil else { return }
        isBeginning = true
        var begun = 0
        while onEnd != nil, hasMore, begun < Self.mostInARow, running.count < max(1, pace.connections(of: connections))
        {
            if let item = parts.next() { begin(item) } else { hasMore = false }
            begun += 1
        }
        isBeginning = false
        guard onEnd != nil, running.isEmpty else { return }
        if hasMore { beginLater() } else { end(.completed) }
    }

    private func begin(_ item: PresentationItem) {
        var id: ObjectIdentifier?
        let prefetch = Prefetch(order(item), pace: pace, on: loop) { [self] result in
            guard let id, let done = running.removeValue(forKey: id) else { return }
            ended(item, done.state, result)
        }
        id = ObjectIdentifier(prefetch)
        running[ObjectIdentifier(prefetch)] = prefetch
        state?.began(prefetch.state)
        prefetch.start()
    }

    private func ended(_ item: PresentationItem, _ part: PrefetchState, _ result: Prefetch.End) {
        switch result {
        case .failed(let error) where item.isSurmised && error.isAbsence:
            state?.lacks(part, segments: item.segments)
            beginOthers()
        case .failed(let error):
            state?.left(part)
            end(.failed(item, error))
        case .completed:
            state?.came(part, segments: item.segments)
            came?(item, part)
            beginOthers()
        }
    }

    private func end(_ end: End) {
        let report = onEnd
        stop()
        report?(end)
    }
}
