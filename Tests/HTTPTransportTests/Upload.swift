import EventIO
import HTTPTransport
import TestSupport

/// A request's body as a sink was told of it, and what a test's thread wants of that sink.
final class Upload: Sendable {
    struct State: Sendable {
        var bytes: [UInt8] = []
        var pieces = 0
        var ends = 0
        var faults: [BodyFault] = []
        var callsAfterTheEnd = 0
        var aborts = 0
        /// Whether the sink pauses after each piece.
        var pauses = false
        /// Whether the sink resumes before its call returns.
        var resumesAtOnce = false
        var exchange: LoopBound<Exchange>?

        var isOver: Bool { ends + faults.count > 0 }
    }

    let state = Monitor(State())

    init(pauses: Bool = false, resumesAtOnce: Bool = false) {
        state.update {
            $0.pauses = pauses
            $0.resumesAtOnce = resumesAtOnce
        }
    }

    /// Reads the body. On the loop.
    /// - Parameters:
    ///   - answer: after the end; where there is none the bytes come back.
    ///   - onPiece: after each piece.
    ///   - onFault: may answer.
    func read(
        _ exchange: Exchange, limit: Int64? = nil, answer: ((Exchange) -> Void)? = nil,
        onPiece: @escaping (Exchange) -> Void = { _ in },
        onFault: @escaping (Exchange) -> Void = { _ in }
    ) {
        state.update { $0.exchange = LoopBound(exchange, on: exchange.loop) }
        exchange.onAbort { [self] in state.update { $0.aborts += 1 } }
        let answer = answer ?? { [self] in $0.respond(bytes: state.read(\.bytes)) }
        exchange.readBody(
            limit: limit, into: UploadSink(self, exchange, onPiece: onPiece, onFault: onFault, answer: answer))
    }

    func resume(pausing: Bool) {
        let exchange = state.update { state in
            state.pauses = pausing
            return state.exchange
        }
        exchange?.post { $0.resumeReading() }
    }

    func waitForPieces(_ count: Int) throws {
        try wait(for: "\(count) pieces of a body") { $0.pieces >= count }
    }

    func waitForBytes(_ count: Int) throws {
        try wait(for: "\(count) bytes of a body") { $0.bytes.count >= count }
    }

    /// - Throws: also once the body is over, after which no more comes.
    private func wait(for what: String, isThere: (State) -> Bool) throws {
        let hasCome: Bool = try state.wait(for: what) { isThere($0) ? true : $0.isOver ? false : nil }
        if !hasCome { throw Unexpected("the body is over without \(what)") }
    }

    /// Waits for the end, and gives the fault that was one.
    @discardableResult
    func waitForEnd() throws -> BodyFault? {
        try state.wait(for: "the end of a body") { $0.isOver ? .some($0.faults.first) : nil }
    }

    /// Whether these bytes have come, no more and no less. As a condition of its own, so that no test prints millions
    /// of them.
    func has(_ bytes: [UInt8]) -> Bool { state.read { $0.bytes == bytes } }

    /// Whether the sink was told of the end exactly once, and of nothing after it.
    var endedOnce: Bool { state.read { $0.ends + $0.faults.count == 1 && $0.callsAfterTheEnd == 0 } }
}

private final class UploadSink: BodySink {
    private let upload: Upload
    private let exchange: Exchange
    private let onPiece: (Exchange) -> Void
    private let onFault: (Exchange) -> Void
    private let answer: (Exchange) -> Void

    init(
        _ upload: Upload, _ exchange: Exchange, onPiece: @escaping (Exchange) -> Void,
        onFault: @escaping (Exchange) -> Void,
        answer: @escaping (Exchange) -> Void
    ) {
        self.upload = upload
        self.exchange = exchange
        self.onPiece = onPiece
        self.onFault = onFault
        self.answer = answer
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> BodyDemand {
        let (pauses, resumes) = upload.state.update { state in
            if state.isOver { state.callsAfterTheEnd += 1 }
            state.bytes.append(contentsOf: bytes)
            state.pieces += 1
            return (state.pauses, state.resumesAtOnce)
        }
        onPiece(exchange)
        if resumes { exchange.resumeReading() }
        return pauses ? .pause : .more
    }

    func ended() {
        upload.state.update { $0.ends += 1 }
        answer(exchange)
    }

    func failed(_ fault: BodyFault) {
        onFault(exchange)
        upload.state.update { $0.faults.append(fault) }
    }
}
