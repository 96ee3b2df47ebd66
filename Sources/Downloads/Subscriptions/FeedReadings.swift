import CachePolicy

/// The checks of feeds that are running: sends their requests, one after the other, and reports what they mean
/// together. For use inside the manager only.
package final class FeedReadings {
    private let source: any FeedSource
    /// Brings an answer from any thread into the manager, which passes it to `take`.
    private let deliver: @Sendable (FeedAnswer, _ number: Int) -> Void
    private var running: [Int: Reading] = [:]
    private var count = 0

    private struct Reading {
        var value: FeedReading
        let end: (FeedReading.Outcome) -> Void
        var cancel: (@Sendable () -> Void)?
    }

    package static let offline = FeedFailure("the proxy is offline and contacts no origin: set offline to false first")

    init(_ source: any FeedSource, deliver: @escaping @Sendable (FeedAnswer, _ number: Int) -> Void) {
        (self.source, self.deliver) = (source, deliver)
    }

    /// - Parameter end: called once, inside the manager.
    func start(_ value: FeedReading, then end: @escaping (FeedReading.Outcome) -> Void) {
        count += 1 // no trap: a count of events
        running[count] = Reading(value: value, end: end)
        send(value.first, for: count)
    }

    private func send(_ request: FeedRequest, for number: Int) {
        guard !source.isOffline else { return finish(number, .failed(Self.offline)) }
        let cancel = source.fetch(request) { [deliver] answer in deliver(answer, number) }
        running[number]?.cancel = cancel
    }

    /// Takes the answer to the last request of a reading, if it is still running.
    func take(_ answer: FeedAnswer, for number: Int) {
        guard let step = running[number]?.value.take(answer) else { return }
        switch step {
        case .request(let next): send(next, for: number)
        case .end(let outcome): finish(number, outcome)
        }
    }

    private func finish(_ number: Int, _ outcome: FeedReading.Outcome) {
        running.removeValue(forKey: number)?.end(outcome)
    }

    /// Ends all readings as failed.
    func stop(_ failure: FeedFailure) {
        let stopped = running
        running = [:]
        for reading in stopped.values {
            reading.cancel?()
            reading.end(.failed(failure))
        }
    }
}
