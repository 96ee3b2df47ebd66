import Downloads
import EventIO
import HTTPTransport
import Synchronization

extension ControlHandler {
    /// Sends events of downloads as server-sent events, until the client disconnects.
    func followDownloads(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let events = DownloadEvents(
            downloads.snapshots, session: session, ids: try parameters.ids().map(Set.init),
            hasEnded: try parameters.flag("ended"),
            lastID: exchange.request.value(of: "Last-Event-ID"), mask: mask(for: exchange))
        var response = Response(200, length: nil)
        response.field("Content-Type", "text/event-stream")
        response.field("Cache-Control", "no-store")
        // The response does not end, so no other can follow it.
        (response.closes, response.isEndless) = (true, true)
        exchange.respond(response, body: DownloadEventSource(exchange, downloads.snapshots, events))
    }
}

/// The events for one client. Loop-bound.
///
/// The snapshots hold states, not events. So a slow client misses the states between two of its batches, and costs
/// one batch at most.
private final class DownloadEventSource: BodySource {
    private let exchange: Exchange
    private let snapshots: DownloadSnapshots
    private var events: DownloadEvents
    private var part = BytesSource([])
    /// Set from any thread when the snapshots change.
    private let news = News()
    /// nil before the client reads any of the body: a response to HEAD has none.
    private var watch: UInt64?
    private var pace: LoopTimer?
    private var pulse: LoopTimer?
    /// Whether a batch is being sent; parts of it may be left.
    private var isTelling = false
    /// Whether the other connections of the loop have their turn.
    private var isYielding = false
    /// Whether the next batch has to wait. Otherwise many changes would keep others on the loop waiting.
    private var isPaced = false
    private var isPulseDue = false

    private static let batchSeconds = 0.1
    private static let pulseSeconds = 15.0
    /// A comment line: it shows intermediaries that the connection is alive, and the kernel whether the client is.
    private static let comment = Array(": \n\n".utf8)

    final class News: Sendable {
        /// True at first: the first batch is everything.
        private let isThere = Atomic<Bool>(true)

        /// - Returns: whether this is the first news since the last `take`.
        func come() -> Bool { !isThere.exchange(true, ordering: .acquiringAndReleasing) }

        func take() -> Bool { isThere.exchange(false, ordering: .acquiringAndReleasing) }
    }

    init(_ exchange: Exchange, _ snapshots: DownloadSnapshots, _ events: DownloadEvents) {
        (self.exchange, self.snapshots, self.events) = (exchange, snapshots, events)
    }

    func next(limit: Int) -> BodyStep {
        if watch == nil { begin() }
        if case .span(let span) = part.next(limit: limit) { return .span(span) }
        guard !isYielding else { return .wait }
        do {
            guard let bytes = try nextPart() else { return .wait }
            part = BytesSource(bytes)
            yield()
            return part.next(limit: limit)
        } catch {
            // A report that cannot be written as JSON. The cut response tells the client that the rest is missing.
            return .cut
        }
    }

    private func nextPart() throws -> [UInt8]? {
        if !isTelling, !isPaced, news.take() {
            events.begin()
            (isTelling, isPaced) = (true, true)
            pace?.schedule(afterSeconds: Self.batchSeconds)
        }
        if isTelling, let bytes = try events.next() { return bytes }
        isTelling = false
        guard isPulseDue else { return nil }
        isPulseDue = false
        return Self.comment
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
        pulse?.schedule(afterSeconds: Self.pulseSeconds)
        let (bound, news) = (LoopBound(exchange, on: exchange.loop), news)
        watch = snapshots.watch {
            if news.come() { bound.post { $0.resume() } }
        }
    }

    private func beat() {
        pulse?.schedule(afterSeconds: Self.pulseSeconds)
        isPulseDue = true
        exchange.resume()
    }

    func finish() {
        if let watch { snapshots.unwatch(watch) }
        (pace, pulse) = (nil, nil)
    }
}
