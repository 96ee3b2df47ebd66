/// Hears of one transfer, on its loop. No call comes after `cancel`, and none but `isIn` from inside `start`, `pause`
/// or `resume`.
package protocol TransferDelegate: AnyObject {
    /// It waits in a queue, or for the response, from here on; perhaps from inside `start`. Only to be written down.
    func transfer(_ transfer: Transfer, isIn phase: UpstreamError.Phase)

    /// Once, before any byte of the body: the final response, after redirects and interim responses.
    func transfer(_ transfer: Transfer, receivedHead head: UpstreamHead)

    /// The next bytes of the body, at most 16 KiB of them (curl cuts its buffer so), valid during the call only.
    /// `transfer.bodyBytesReceived` is their offset in the body.
    ///
    /// - Returns: false where they are not taken: the transfer is then paused, and the same bytes come again after
    ///   `resume`, perhaps with more behind them.
    func transfer(_ transfer: Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool

    /// The next bytes of the request's body, where it has one (`UpstreamRequest.Content`).
    ///
    /// After `wait` it is asked again once `Transfer.resumeUpload` was called. An origin that has answered with an
    /// error may not take the rest, so that this is not called any more.
    /// - Parameter buffer: where they are to be put.
    func transfer(_ transfer: Transfer, fillUpload buffer: UnsafeMutableRawBufferPointer) -> UploadStep

    /// Once, the last call: nil where the response ended as its framing said. No callback of curl's is running, so new
    /// transfers can be started here.
    func transfer(_ transfer: Transfer, finishedWith error: UpstreamError?)
}

/// A delegate's answer when it is asked for more of a request's body.
package enum UploadStep: Sendable {
    /// So many bytes were put into the buffer, at least one.
    case bytes(Int)
    /// Nothing is there yet.
    case wait
    /// The body is complete.
    case end
}

extension TransferDelegate {
    package func transfer(_ transfer: Transfer, isIn phase: UpstreamError.Phase) {}

    package func transfer(_ transfer: Transfer, fillUpload buffer: UnsafeMutableRawBufferPointer) -> UploadStep { .end }
}
