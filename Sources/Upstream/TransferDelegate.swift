import HTTPModel

/// One request to an origin, with its response. Loop-bound; started by `UpstreamClient.start`.
package protocol Transfer: AnyObject {
    /// Bytes that the delegate has taken.
    var bodyBytesReceived: Int64 { get }

    /// Whether the body is held back. The head still arrives, and so does the end if no byte is left.
    var isPaused: Bool { get }

    /// Whether the response's head has arrived, and its body is being received.
    var isReceiving: Bool { get }

    /// Whether its owner can request its bytes again, so that it may be ended while it is paused
    /// (`TransferDelegate.transferGivesWay`). Ends with the pause.
    var mayGiveWay: Bool { get set }

    /// Holds the body back for a moment: the transfer keeps its slot. Bytes under way are delivered after `resume`.
    func pause()

    /// Resumes the body, once the running callback has returned.
    func resume()

    /// Resumes the upload after the delegate has answered `wait`.
    func resumeUpload()

    /// A player now needs what only downloads had wanted: a queued transfer moves to the queue for playback.
    func hurry()

    /// Ends the transfer without further calls of the delegate. Idempotent; may be called from within a delegate's
    /// call.
    func cancel()
}

/// Receives the events of one transfer, on its loop. There are no calls after `cancel`, and only `isIn` and `redirectOf`
/// may be called from within `start`, `pause` or `resume`.
package protocol TransferDelegate: AnyObject {
    /// The transfer now waits in a queue or for the response. May be called from within `start`; only record it.
    func transfer(_ transfer: any Transfer, isIn phase: UpstreamError.Phase)

    /// Asks whether a URL is known to redirect, before a request with these fields goes there. May be called from within
    /// `start`; only answer it.
    func transfer(_ transfer: any Transfer, redirectOf url: String, with fields: HeaderFields) -> KnownRedirect?

    /// The transfer follows a redirect that it has received, unless it is cancelled here.
    func transfer(_ transfer: any Transfer, followed redirect: ReceivedRedirect)

    /// A response before the final one, perhaps before a redirect.
    func transfer(_ transfer: any Transfer, receivedInterim interim: InterimResponse)

    /// Called once, before any byte of the body, with the final response, after redirects and interim responses.
    func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead)

    /// The next bytes of the body, at most 16 KiB (the size of curl's pieces), valid only during the call.
    /// `transfer.bodyBytesReceived` is their offset in the body.
    ///
    /// - Returns: false if they are not taken: the transfer is then paused, and the same bytes are delivered again
    ///   after `resume`, perhaps with more. It gives its slot to others, unless `pause` was called.
    func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool

    /// Fills in the next bytes of the request's body, if it has one (`UpstreamRequest.Content`).
    ///
    /// After `wait`, it is called again once `Transfer.resumeUpload` was called. If the origin has answered with an
    /// error, it may not be called again.
    /// - Parameter buffer: the destination.
    func transfer(_ transfer: any Transfer, fillUpload buffer: UnsafeMutableRawBufferPointer) -> UploadStep

    /// Others need the place of a paused transfer whose `mayGiveWay` is set: the delegate ends it.
    func transferGivesWay(_ transfer: any Transfer)

    /// Called once, last: without an error if the response ended as its framing said. No callback of curl is running,
    /// so new transfers can be started here.
    func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?)
}

/// The delegate's answer to `fillUpload`.
package enum UploadStep: Sendable {
    /// This many bytes were put into the buffer, at least one.
    case bytes(Int)
    /// No bytes are available yet.
    case wait
    /// The body is complete.
    case end
}

extension TransferDelegate {
    package func transfer(_ transfer: any Transfer, isIn phase: UpstreamError.Phase) {}

    package func transfer(_ transfer: any Transfer, redirectOf url: String, with fields: HeaderFields) -> KnownRedirect?
    {
        nil
    }

    package func transfer(_ transfer: any Transfer, followed redirect: ReceivedRedirect) {}

    package func transfer(_ transfer: any Transfer, receivedInterim interim: InterimResponse) {}

    package func transfer(_ transfer: any Transfer, fillUpload buffer: UnsafeMutableRawBufferPointer) -> UploadStep {
        .end
    }

    package func transferGivesWay(_ transfer: any Transfer) {}
}
