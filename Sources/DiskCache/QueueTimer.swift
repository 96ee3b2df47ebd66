@preconcurrency import Dispatch

/// Fires once a second on a queue, until it is cancelled.
final class QueueTimer: Sendable {
    private let source: any DispatchSourceTimer

    init(_ queue: DispatchQueue) {
        source = DispatchSource.makeTimerSource(queue: queue)
        // A source that was never resumed must not be released.
        source.schedule(deadline: .distantFuture)
        source.resume()
    }

    func start(_ handler: @escaping @Sendable () -> Void) {
        source.setEventHandler(handler: handler)
        source.schedule(deadline: .now() + 1, repeating: 1)
    }

    func cancel() { source.cancel() }
}
