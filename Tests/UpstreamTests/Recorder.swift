import CachePolicy
import EventIO
import HTTPModel
import TestSupport
import Upstream

/// What one transfer told its delegate, for the test's thread to wait upon; and what to do when it tells it.
final class Recorder: TransferDelegate, Sendable {
    struct State: Sendable {
        var heads: [UpstreamHead] = []
        var body: [UInt8] = []
        /// Calls with bytes that were not taken.
        var refusals = 0
        var endings: [UpstreamError?] = []
        var callsAfterCancel = 0
        var isCancelled = false
        /// Bytes that are taken before the rest is refused.
        var allowance = Int.max
    }

    enum Step: Sendable { case head, body, refusal, end }

    let state = Monitor(State())
    let keepsBody: Bool
    private let during: (@Sendable (Transfer, Step) -> Void)?

    /// - Parameter during: called on the loop, from inside the delegate's call.
    init(allowance: Int = .max, keepsBody: Bool = true, during: (@Sendable (Transfer, Step) -> Void)? = nil) {
        self.keepsBody = keepsBody
        self.during = during
        state.update { $0.allowance = allowance }
    }

    func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead) {
        note { $0.heads.append(head) }
        during?(transfer, .head)
    }

    func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool {
        let isTaken = note { state in
            guard state.allowance >= bytes.count else {
                state.refusals += 1
                return false
            }
            state.allowance -= bytes.count
            if keepsBody { state.body.append(contentsOf: bytes) }
            return true
        }
        during?(transfer, isTaken ? .body : .refusal)
        return isTaken
    }

    func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?) {
        note { $0.endings.append(error) }
        during?(transfer, .end)
    }

    @discardableResult
    private func note<Result>(_ change: (inout State) -> Result) -> Result {
        state.update { state in
            if state.isCancelled { state.callsAfterCancel += 1 }
            return change(&state)
        }
    }

    /// Waits for the end.
    @discardableResult
    func outcome() throws -> UpstreamError? {
        try state.wait(for: "the end of a transfer") { $0.endings.first }
    }

    /// Waits for the head.
    func head() throws -> UpstreamHead {
        try state.wait(for: "the head of a response") { $0.heads.first }
    }

    /// Whether the body is that part of the media, or the whole. Not `==` in the test: its report would compare each
    /// byte.
    func received(_ media: Media, _ range: Range<Int64>? = nil) -> Bool {
        body == media.bytes(range ?? 0..<media.size)
    }

    var body: [UInt8] { state.read(\.body) }
    var heads: [UpstreamHead] { state.read(\.heads) }
}

/// A loop with a client on it.
final class Upstreams: Sendable {
    let loop: EventLoop
    let client: LoopBound<UpstreamClient>
    let policy: Current<AddressPolicy>
    let slots: TransferSlots

    init(
        allow: [String] = ["127.0.0.1", "localhost"], _ settings: UpstreamSettings = UpstreamSettings(),
        resolver: NameResolver = NameResolver(nanoseconds: MonotonicClock.nanoseconds),
        slots: TransferSlots = TransferSlots(), outgoing: OutgoingProxy? = nil
    ) throws {
        let loop = try EventLoop()
        let policy = Current<AddressPolicy>(try AddressPolicy(allow: allow))
        try loop.start()
        self.loop = loop
        self.policy = policy
        self.slots = slots
        client = loop.sync {
            LoopBound(
                UpstreamClient(
                    loop: loop, policy: policy, settings: settings, resolver: resolver, slots: slots,
                    outgoing: Current(outgoing)),
                on: loop)
        }
    }

    deinit {
        let client = client
        loop.sync { client.value.shutdown() }
        loop.stop()
    }

    @discardableResult
    func start(_ request: UpstreamRequest, _ recorder: Recorder) -> Running {
        let client = client, loop = loop
        return loop.sync { Running(transfer: LoopBound(client.value.start(request, delegate: recorder), on: loop)) }
    }

    /// Starts a request and waits for its end.
    func fetch(
        _ url: String, method: UpstreamRequest.Method = .get, span: UpstreamRequest.Span? = nil,
        fields: HeaderFields = .init(), confined: [String] = []
    ) throws -> (recorder: Recorder, error: UpstreamError?) {
        let recorder = Recorder()
        start(UpstreamRequest(url: url, method: method, span: span, fields: fields, confined: confined), recorder)
        return (recorder, try recorder.outcome())
    }

    func onLoop<Result: Sendable>(_ body: @escaping @Sendable (UpstreamClient) -> Result) -> Result {
        let client = client
        return loop.sync { body(client.value) }
    }

    var openTransfers: Int { onLoop { $0.openTransfers } }
}

extension NameResolver {
    /// Finds the same addresses for each name.
    static func standIn(_ addresses: [String]) -> NameResolver {
        NameResolver(nanoseconds: MonotonicClock.nanoseconds) { _ in addresses }
    }
}

/// A transfer under way, reached from the test's thread.
struct Running: Sendable {
    let transfer: LoopBound<Transfer>

    func onLoop<Result: Sendable>(_ body: @escaping @Sendable (Transfer) -> Result) -> Result {
        let transfer = transfer
        return transfer.loop.sync { body(transfer.value) }
    }

    func cancel(_ recorder: Recorder) {
        onLoop { transfer in
            transfer.cancel()
            recorder.state.update { $0.isCancelled = true }
        }
    }
}
