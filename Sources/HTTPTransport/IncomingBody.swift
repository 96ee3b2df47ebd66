import HTTPModel

/// A request's body on its way in.
struct IncomingBody {
    /// So much of a body that nobody reads is taken in, so that the connection can be kept.
    private static let maxDrainedBytes: Int64 = 64 << 10

    var decoder: BodyDecoder
    /// Who takes the body; nil before somebody asks for it, and once it is not wanted any more.
    var sink: (any BodySink)?
    var limit = Int64.max
    /// Bytes of the body that the sink was given.
    var received: Int64 = 0
    var isPaused = false
    /// The client waits for `100 Continue`, as far as we know.
    var isAwaited: Bool
    /// Its end cannot be found any more.
    var isBroken = false

    init(_ head: RequestHead) {
        decoder = BodyDecoder(head.body)
        isAwaited = head.expectsContinue
        isTunnel = false
    }

    /// Whether it is what a client sends through a tunnel: it may pause for as long as it likes.
    let isTunnel: Bool

    init(tunnelInto sink: any BodySink) {
        decoder = BodyDecoder(.length(.max))
        isAwaited = false
        isTunnel = true
        self.sink = sink
    }

    /// Whether bytes go to the sink as they come.
    var isWanted: Bool { sink != nil && !isPaused }

    /// Whether a request can follow although nobody reads this body.
    /// - Parameter bytes: what of it has come and is not decoded.
    func canBeDrained(after bytes: UnsafeRawBufferPointer) -> Bool {
        // RFC 9110 §10.1.1: after a final answer that client may send the body or the next request, and nobody knows
        // which.
        if isBroken || isAwaited && bytes.isEmpty { return false }
        if let remaining = decoder.remaining { return remaining <= Self.maxDrainedBytes }
        return decoder.ends(within: bytes)
    }
}
