import Activity
import EventIO
import HTTPModel
import HTTPTransport
import TestSupport

/// A server on loops of its own whose answers a closure gives. Stops, cutting what runs, when it goes.
final class TestServer: Sendable {
    typealias Answer = @Sendable (Exchange) -> Void

    let server: HTTPServer
    let metrics = ProxyMetrics()
    private let group: EventLoopGroup

    /// - Parameter answer: called on the connection's loop, for each request.
    init(
        loops: Int = 1, port: Int = 0, listener: InheritedListener? = nil, limits: TransportLimits = .init(),
        clients: ClientRules = .init(), _ answer: @escaping Answer
    ) throws {
        group = try EventLoopGroup(count: loops)
        try group.start()
        do {
            server = try HTTPServer(
                ListenAddress(host: "127.0.0.1", port: port), listener: listener, loops: group.loops, limits: limits,
                clients: clients, metrics: metrics
            ) { _ in
                ClosureHandler(answer)
            }
        } catch {
            group.stop()
            throw error
        }
    }

    deinit {
        stop(graceSeconds: 0)
        group.stop()
    }

    private let isStopped = Monitor(false)

    func stop(graceSeconds: Double, quietSeconds: Double? = nil) {
        let isFirst = isStopped.update { stopped in
            defer { stopped = true }
            return !stopped
        }
        if isFirst { server.stop(graceSeconds: graceSeconds, quietSeconds: quietSeconds) }
    }

    var port: Int { server.address.port }

    func client(receiveBuffer: Int? = nil) throws -> RawClient {
        try RawClient(port: port, receiveBuffer: receiveBuffer)
    }

    /// A client whose first bytes lie in the server's socket before that is accepted. How long they may take, which the
    /// server counts from then on, is then no matter of when this machine lets a test's thread run.
    /// - Parameter send: sends them: no more than a socket takes.
    func client(receiveBuffer: Int? = nil, thatSends send: (RawClient) throws -> Void) throws -> RawClient {
        let gate = Monitor((held: 0, isOpen: false))
        defer { gate.update { $0.isOpen = true } }
        for loop in group.loops {
            loop.post {
                gate.update { $0.held += 1 }
                try? gate.wait(for: "a client's bytes") { $0.isOpen ? () : nil }
            }
        }
        try gate.wait(for: "the loops") { $0.held == group.loops.count ? () : nil }
        let client = try client(receiveBuffer: receiveBuffer)
        try send(client)
        try eventually("the bytes in the server's socket") { client.hasArrived }
        return client
    }

    /// Waits until no more than `count` connections are open: a client sees its end before the server counts it.
    func waitUntilIdle(connections count: Int64 = 0) throws {
        try eventually("\(count) connections", instead: "\(metrics.connections.value)") {
            metrics.connections.value <= count
        }
    }
}

private final class ClosureHandler: RequestHandler {
    private let answer: TestServer.Answer

    init(_ answer: @escaping TestServer.Answer) { self.answer = answer }

    func handle(_ exchange: Exchange) { answer(exchange) }
}

struct Unexpected: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// What a test's thread feeds to a body, and what became of that.
final class Feed: Sendable {
    enum Item: Sendable {
        case bytes([UInt8]), end, cut
    }

    struct State: Sendable {
        var items: [Item] = []
        /// How often the connection was told to wait.
        var waits = 0
        var finishes = 0
        var callsAfterFinish = 0
        var exchange: LoopBound<Exchange>?
    }

    let state = Monitor(State())

    /// - Parameter items: what is there from the start.
    init(_ items: Item...) { state.update { $0.items = items } }

    /// Answers an exchange with this body. On the loop.
    func answer(_ exchange: Exchange, length: Int64?, status: Int = 200, keepsReading: Bool = false) {
        state.update { $0.exchange = LoopBound(exchange, on: exchange.loop) }
        exchange.respond(Response(status, length: length), body: FedSource(self), keepsReading: keepsReading)
    }

    func give(_ items: Item...) {
        let exchange = state.update { state in
            state.items += items
            return state.exchange
        }
        exchange?.post { $0.resume() }
    }

    func waitForWait(_ count: Int = 1) throws {
        try state.wait(for: "a body that waits") { $0.waits >= count ? () : nil }
    }

    func waitForFinish() throws {
        try state.wait(for: "the end of a body") { $0.finishes > 0 ? () : nil }
    }

    /// Whether its end was told exactly once, and nothing asked after that.
    var endedOnce: Bool { state.read { $0.finishes == 1 && $0.callsAfterFinish == 0 } }
}

/// The body that a feed feeds. Its spans stay valid until the next call, and no longer: what was given is overwritten.
private final class FedSource: BodySource {
    private let feed: Feed
    private var given: UnsafeMutableRawBufferPointer?

    init(_ feed: Feed) { self.feed = feed }

    deinit { given?.deallocate() }

    func next(limit: Int) -> BodyStep {
        spoil()
        let item: Feed.Item? = feed.state.update { state in
            if state.finishes > 0 { state.callsAfterFinish += 1 }
            guard let item = state.items.first else {
                state.waits += 1
                return nil
            }
            guard case .bytes(let bytes) = item, bytes.count > limit else { return state.items.removeFirst() }
            state.items[0] = .bytes(Array(bytes[limit...]))
            return .bytes(Array(bytes[..<limit]))
        }
        switch item {
        case nil: return .wait
        case .end: return .end
        case .cut: return .cut
        case .bytes(let bytes):
            let span = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
            span.copyBytes(from: bytes)
            given = span
            return .span(BodySpan(bytes: UnsafeRawBufferPointer(span)))
        }
    }

    func finish() {
        spoil()
        feed.state.update { $0.finishes += 1 }
    }

    private func spoil() {
        given?.initializeMemory(as: UInt8.self, repeating: 0xDD)
        given?.deallocate()
        given = nil
    }
}

extension Exchange {
    /// Answers with bytes whose length is known.
    func respond(bytes: [UInt8], status: Int = 200) {
        respond(Response(status, length: Int64(bytes.count)), body: BytesSource(bytes))
    }
}
