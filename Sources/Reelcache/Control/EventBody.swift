import EventIO
import HTTPTransport
import Synchronization

/// Server-sent events for one client, until it disconnects. Loop-bound.
///
/// What they are made of holds states, not events, and each part is made when the client is ready for it. So a slow
/// client misses the states in between, and holds one part at most.
/// - Parameter Cursor: how far the client is.
final class EventBody<Cursor: Sendable>: BodySource {
    /// Some events, sent together.
    struct Part: Sendable {
        /// nil for none.
        let text: EventText?
        let cursor: Cursor
        /// Whether there are no more for now.
        let isLast: Bool
    }

    /// Makes the next part, on any thread; nil ends the stream.
    typealias Make = @Sendable (Cursor, _ then: @escaping @Sendable (Part?) -> Void) -> Void
    /// Begins to call, from any thread, when there is something new, and returns what ends that.
    typealias Watch = @Sendable (_ wake: @escaping @Sendable () -> Void) -> @Sendable () -> Void

    private let exchange: Exchange
    private let stream: OpenAnswers.Answer
    private let make: Make
    private let watch: Watch
    /// Looks for news twice a second; nil if they come by themselves.
    private let refresh: (@Sendable () -> Void)?
    private var cursor: Cursor
    private var text: EventText?
    private var sent = 0
    private let news = News()
    /// Ends the watch; nil before the client reads any of the body: a response to HEAD has none.
    private var unwatch: (@Sendable () -> Void)?
    private var pace: LoopTimer?
    private var pulse: LoopTimer?
    private var looks: LoopTimer?
    private var state = State.idle
    /// Whether the next state has to wait. Otherwise many changes would keep others waiting.
    private var isPaced = false
    private var isPulseDue = false

    /// Whether the next part of a state is due, is being made, or will never come.
    private enum State { case idle, reporting, waiting, over }

    init(
        _ exchange: Exchange, _ stream: OpenAnswers.Answer, from cursor: Cursor,
        refresh: (@Sendable () -> Void)? = nil, watch: @escaping Watch, make: @escaping Make
    ) {
        (self.exchange, self.stream, self.cursor, self.refresh) = (exchange, stream, cursor, refresh)
        (self.watch, self.make) = (watch, make)
    }

    func next(limit: Int) -> BodyStep {
        if unwatch == nil { begin() }
        if text.map({ sent == $0.bytes.count }) == true { text = nil }
        if text == nil, isPulseDue { (text, sent, isPulseDue) = (.comment, 0, false) }
        if let text {
            let bytes = UnsafeRawBufferPointer(rebasing: text.bytes[sent...].prefix(limit))
            sent += bytes.count
            return .span(BodySpan(bytes: bytes))
        }
        if state == .over { return .cut }
        if state == .reporting || state == .idle && !isPaced && news.take() { makePart() }
        return .wait
    }

    private func makePart() {
        if state == .idle {
            isPaced = true
            pace?.schedule(afterSeconds: EventText.paceSeconds)
        }
        state = .waiting
        let bound = LoopBound(self, on: exchange.loop)
        make(cursor) { part in bound.post { $0.take(part) } }
    }

    private func take(_ part: Part?) {
        guard state != .over else { return }
        if let part { (text, sent, cursor) = (part.text, 0, part.cursor) }
        state = part.map { $0.isLast ? .idle : .reporting } ?? .over
        exchange.resume()
    }

    private func begin() {
        pace = LoopTimer(on: exchange.loop) { [weak self] in
            self?.isPaced = false
            self?.exchange.resume()
        }
        pulse = LoopTimer(on: exchange.loop) { [weak self] in self?.beat() }
        pulse?.schedule(afterSeconds: EventText.pulseSeconds)
        let (bound, news) = (LoopBound(exchange, on: exchange.loop), news)
        unwatch = watch { if news.come() { bound.post { $0.resume() } } }
        guard refresh != nil else { return }
        looks = LoopTimer(on: exchange.loop) { [weak self] in self?.look() }
        look()
    }

    private func look() {
        looks?.schedule(afterSeconds: LiveState.refreshSeconds)
        refresh?()
    }

    private func beat() {
        pulse?.schedule(afterSeconds: EventText.pulseSeconds)
        isPulseDue = true
        exchange.resume()
    }

    func finish() {
        unwatch?()
        (pace, pulse, looks, text, state) = (nil, nil, nil, nil, .over)
    }

    /// Whether something has come since the client was told last.
    private final class News: Sendable {
        /// True at first: the first state is news.
        private let isThere = Atomic<Bool>(true)

        /// - Returns: whether this is the first news since the last `take`.
        func come() -> Bool { !isThere.exchange(true, ordering: .acquiringAndReleasing) }

        func take() -> Bool { isThere.exchange(false, ordering: .acquiringAndReleasing) }
    }
}

/// Server-sent events as bytes (WHATWG HTML §9.2), shared by all who get them.
final class EventText: Sendable {
    /// A comment line: it shows intermediaries that the connection is alive, and the kernel whether the client is.
    static let comment = EventText(Array(": \n\n".utf8))
    static let pulseSeconds = 15.0
    /// At least this long lies between two states that a client is told.
    static let paceSeconds = 0.1

    nonisolated(unsafe) let bytes: UnsafeRawBufferPointer

    init(_ bytes: [UInt8]) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        copy.copyBytes(from: bytes)
        self.bytes = UnsafeRawBufferPointer(copy)
    }

    deinit { bytes.deallocate() }

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
