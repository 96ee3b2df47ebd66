import CachePolicy
import ControlAPI
import DiskCache
import EventIO
import HTTPModel
import HTTPTransport

/// Passes a resource from a request's body to the store. Loop-bound.
///
/// Bytes that arrive while a thread writes are buffered, up to one piece; then the client has to wait.
final class ImportAnswer: BodySink {
    private let exchange: Exchange
    private let importer: Importer
    private let store: CacheStore
    private let mask: URLMask?
    private var piece: [UInt8] = []
    /// Whether a thread uses the importer.
    private var isWriting = false
    private var isPaused = false
    /// Whether the whole body has arrived.
    private var isComplete = false
    /// Whether it has failed, or the client has disconnected.
    private var isOver = false
    private static let pieceBytes = 1 << 20

    init(_ exchange: Exchange, _ importer: Importer, _ store: CacheStore, _ mask: URLMask?) {
        self.mask = mask
        self.exchange = exchange
        self.importer = importer
        self.store = store
    }

    func start() {
        guard exchange.isOpen else { return cancel() }
        exchange.readBody(limit: nil, into: self)
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> BodyDemand {
        guard !isOver else { return .more }
        piece.append(contentsOf: bytes)
        if piece.count >= Self.pieceBytes, !isWriting { write() }
        isPaused = piece.count >= Self.pieceBytes
        return isPaused ? .pause : .more
    }

    func ended() {
        isComplete = true
        if !isWriting && !isOver { resume() }
    }

    func failed(_ fault: BodyFault) {
        if isWriting { isOver = true } else { cancel() }
        if case .refused(let fault) = fault { exchange.respond(ControlError(fault.status, fault.reason)) }
    }

    private func write() {
        let bytes = piece
        piece = []
        work { importer in
            try bytes.withUnsafeBytes { try importer.write($0) }
        } then: { answer, _ in
            answer.resume()
        }
    }

    /// Continues after a thread has finished.
    private func resume() {
        if piece.count >= Self.pieceBytes || isComplete && !piece.isEmpty {
            write()
        } else if isComplete {
            return finish()
        }
        guard isPaused else { return }
        isPaused = false
        exchange.resumeReading()
    }

    private func finish() {
        work { importer in
            try importer.finish(isByHand: true)
        } then: { answer, report in
            answer.isOver = true
            do { answer.exchange.respond(201, json: try ControlJSON.line(report, masked: answer.mask)) } catch {
                answer.exchange.respond(ControlError(error))
            }
        }
    }

    private func cancel() {
        isOver = true
        // If the store is being closed, the importer ends when it is released.
        _ = store.perform { [importer] in importer.cancel() }
    }

    /// Lends the importer to a thread.
    private func work<Value: Sendable>(
        _ body: @escaping @Sendable (Importer) throws -> Value, then: @escaping @Sendable (ImportAnswer, Value) -> Void
    ) {
        isWriting = true
        let bound = LoopBound(self, on: exchange.loop)
        let runs = store.perform { [importer] in
            let result = Result { try body(importer) }
            bound.post { $0.worked(result, then) }
        }
        guard !runs else { return }
        (isWriting, isOver) = (false, true)
        exchange.respond(ControlError(503, "the proxy is being stopped: try again later"))
    }

    private func worked<Value>(_ result: Result<Value, any Error>, _ then: (ImportAnswer, Value) -> Void) {
        isWriting = false
        guard !isOver else { return cancel() }
        switch result {
        case .success(let value): then(self, value)
        case .failure(let error):
            cancel()
            exchange.respond(ControlError(error))
        }
    }
}
