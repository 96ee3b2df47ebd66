import EventIO
import HTTPTransport
import Synchronization

/// The events for one client: batches, each of them made when the client is ready for it.
protocol EventBatches: SendableMetatype {
    /// Begins a batch, after the previous one was sent.
    mutating func begin()
    /// The next part of the batch; nil at its end.
    mutating func next() throws -> [UInt8]?
    /// - Parameter wake: called from any thread when there is something for a batch.
    /// - Returns: ends that.
    func watch(_ wake: @escaping @Sendable () -> Void) -> @Sendable () -> Void
    /// How often `refresh` is called, in seconds; nil if news come by themselves.
    var refreshSeconds: Double? { get }
    /// Looks for news.
    func refresh()
}

extension EventBatches {
    var refreshSeconds: Double? { nil }
    func refresh() {}
}

/// Server-sent events for one client, until it disconnects. Loop-bound.
///
/// What they are made of holds states, not events. So a slow client misses the states between two of its batches, and
/// costs one batch at most.
final class EventBody<Batches: EventBatches>: BodySource {
    private let exchange: Exchange
    private var batches: Batches
    private var part = BytesSource([])
    /// Set from any thread when there is something new.
    private let news = News()
    /// Ends the watch; nil before the client reads any of the body: a response to HEAD has none.
    private var unwatch: (@Sendable () -> Void)?
    private var pace: LoopTimer?
    private var pulse: LoopTimer?
    private var refresh: LoopTimer?
    /// Whether a batch is being sent; parts of it may be left.
    private var isTelling = false
    /// Whether the other connections of the loop have their turn.
    private var isYielding = false
    /// Whether the next batch has to wait. Otherwise many changes would keep others on the loop waiting.
    private var isPaced = false
    private var isPulseDue = false

    init(_ exchange: Exchange, _ batches: Batches) { (self.exchange, self.batches) = (exchange, batches) }

    func next(limit: Int) -> BodyStep {
        if unwatch == nil { begin() }
        if case .span(let span) = part.next(limit: limit) { return .span(span) }
        guard !isYielding else { return .wait }
        do {
            guard let bytes = try nextPart() else { return .wait }
            part = BytesSource(bytes)
            yield()
            return part.next(limit: limit)
        } catch {
            // Something that cannot be written as JSON. The cut response tells the client that the rest is missing.
            return .cut
        }
    }

    private func nextPart() throws -> [UInt8]? {
        if !isTelling, !isPaced, news.take() {
            batches.begin()
            (isTelling, isPaced) = (true, true)
            pace?.schedule(afterSeconds: EventText.batchSeconds)
        }
        if isTelling, let bytes = try batches.next() { return bytes }
        isTelling = false
        guard isPulseDue else { return nil }
        isPulseDue = false
        return EventText.comment
    }

    /// Gives the other connections of the loop a turn before the next part.
    private func yield() {
        isYielding = true
        LoopBound(self, on: exchange.loop).post {
            $0.isYielding = false
            $0.exchange.resume()
        }
    }

    private func begin() {
        pace = LoopTimer(on: exchange.loop) { [weak self] in
            self?.isPaced = false
            self?.exchange.resume()
        }
        pulse = LoopTimer(on: exchange.loop) { [weak self] in self?.beat() }
        pulse?.schedule(afterSeconds: EventText.pulseSeconds)
        let (bound, news) = (LoopBound(exchange, on: exchange.loop), news)
        unwatch = batches.watch {
            if news.come() { bound.post { $0.resume() } }
        }
        guard batches.refreshSeconds != nil else { return }
        refresh = LoopTimer(on: exchange.loop) { [weak self] in self?.lookForNews() }
        lookForNews()
    }

    private func lookForNews() {
        if let seconds = batches.refreshSeconds { refresh?.schedule(afterSeconds: seconds) }
        batches.refresh()
    }

    private func beat() {
        pulse?.schedule(afterSeconds: EventText.pulseSeconds)
        isPulseDue = true
        exchange.resume()
    }

    func finish() {
        unwatch?()
        (pace, pulse, refresh) = (nil, nil, nil)
    }
}

/// Whether something has come since somebody looked last.
private final class News: Sendable {
    /// True at first: the first batch is everything.
    private let isThere = Atomic<Bool>(true)

    /// - Returns: whether this is the first news since the last `take`.
    func come() -> Bool { !isThere.exchange(true, ordering: .acquiringAndReleasing) }

    func take() -> Bool { isThere.exchange(false, ordering: .acquiringAndReleasing) }
}

/// The form of server-sent events (WHATWG HTML §9.2).
enum EventText {
    /// A comment line: it shows intermediaries that the connection is alive, and the kernel whether the client is.
    static let comment = Array(": \n\n".utf8)
    static let pulseSeconds = 15.0
    /// At least this long lies between the beginnings of two batches.
    static let batchSeconds = 0.1

    /// - Parameter line: the data, on one line, with its line feed.
    static func event(_ name: String, id: String? = nil, _ line: [UInt8]) -> [UInt8] {
        Array("event: \(name)\n".utf8) + (id.map { Array("id: \($0)\n".utf8) } ?? []) + Array("data: ".utf8) + line
            + [UInt8(ascii: "\n")]
    }

    static var head: Response {
        var response = Response(200, length: nil)
        response.field("Content-Type", "text/event-stream")
        response.field("Cache-Control", "no-store")
        // The response does not end, so no other can follow it.
        (response.closes, response.isEndless) = (true, true)
        return response
    }
}
