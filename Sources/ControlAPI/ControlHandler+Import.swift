import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import HTTPTransport

extension ControlHandler {
    /// Imports a resource from the body.
    func importResource(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let url = try parameters.requiredURL()
        let replaces = try parameters.flag("replace")
        let request = exchange.request
        guard request.value(of: "Content-Length") != nil, let length = exchange.bodyLength else {
            throw ControlError(411, "the length of the file is unknown: send Content-Length")
        }
        guard length > 0 else { throw ControlError(422, "the body is empty: send the bytes of the file") }
        let fields = try Self.keptFields(request)
        let mask = mask(for: exchange)
        perform(exchange) { [policy] store in
            try store.importer(policy.value.resolve(url).key, length: length, fields: fields, replaces: replaces)
        } then: { [store] exchange, importer in
            ImportAnswer(exchange, importer, store, mask, status: 201).start()
        }
    }

    private static func keptFields(_ request: RequestHead) throws(ControlError) -> HeaderFields {
        var fields = HeaderFields()
        if let type = request.value(of: "Content-Type") { fields.append("Content-Type", type) }
        if let tag = request.value(of: "ETag") {
            guard EntityTag(parsing: tag) != nil else {
                throw ControlError(400, "ETag is not an entity tag: write it in double quotes, such as \"v1\"")
            }
            fields.append("ETag", tag)
        }
        if let date = request.value(of: "Last-Modified") {
            guard HTTPDate.parse(date) != nil else {
                throw ControlError(400, "Last-Modified is not a date: write it as \(HTTPDate.format(784_111_777))")
            }
            fields.append("Last-Modified", date)
        }
        return fields
    }
}

/// What takes a request's body in pieces, on a thread of the store.
protocol BodyIntake: AnyObject, Sendable {
    associatedtype Report: Encodable & Sendable
    associatedtype Failure: Error

    func write(_ bytes: UnsafeRawBufferPointer) throws(Failure)
    /// The body is complete.
    func finish() throws(Failure) -> Report
    /// No more will come.
    func cancel()
}

extension Importer: BodyIntake {}

/// Passes a request's body to the store. Loop-bound.
///
/// Bytes that arrive while a thread writes are buffered, up to one piece; then the client has to wait.
final class ImportAnswer<Intake: BodyIntake>: BodySink {
    private let exchange: Exchange
    private let importer: Intake
    private let status: Int
    private let isLong: Bool
    private let refusal: (any Error) -> ControlError
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
    private static var pieceBytes: Int { 1 << 20 }

    /// - Parameters:
    ///   - status: of the answer when all is well.
    ///   - isLong: whether it may keep the disk busy for long.
    ///   - refusal: the answer for an error.
    init(
        _ exchange: Exchange, _ importer: Intake, _ store: CacheStore, _ mask: URLMask?, status: Int,
        isLong: Bool = false, refusal: @escaping (any Error) -> ControlError = { ControlError($0) }
    ) {
        (self.mask, self.status, self.isLong, self.refusal) = (mask, status, isLong, refusal)
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
        if !isWriting && !isOver { goOn() }
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
            answer.goOn()
        }
    }

    /// Continues after a thread has finished.
    private func goOn() {
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
            try importer.finish()
        } then: { answer, report in
            answer.isOver = true
            do { answer.exchange.respond(answer.status, json: try ControlJSON.line(report, masked: answer.mask)) } catch
            {
                answer.exchange.respond(ControlError(error))
            }
        }
    }

    private func cancel() {
        isOver = true
        // If the store is being closed, the importer ends when it is released.
        _ = perform { [importer] in importer.cancel() }
    }

    /// - Returns: whether it will run; false once the store is being closed.
    private func perform(_ work: @escaping @Sendable () -> Void) -> Bool {
        isLong ? store.performLong(work) : store.perform(work)
    }

    /// Lends the importer to a thread.
    private func work<Value: Sendable>(
        _ body: @escaping @Sendable (Intake) throws -> Value, then: @escaping @Sendable (ImportAnswer, Value) -> Void
    ) {
        isWriting = true
        let bound = LoopBound(self, on: exchange.loop)
        let runs = perform { [importer] in
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
            // Before another thread uses the importer.
            let answer = refusal(error)
            cancel()
            exchange.respond(answer)
        }
    }
}
