import EventIO

/// One direction of a transfer: whether its owner holds it back, and whether curl does. A value.
struct Flow {
    /// The owner wants no bytes now.
    var isHeld = false
    /// curl has paused this direction.
    var isHeldInCurl = false
    /// A callback that resumes it is scheduled.
    var isResuming = false

    /// The direction's bit for `curl_easy_pause`, if it is paused.
    func bits(_ direction: Int32) -> Int32 { isHeldInCurl ? direction : 0 }
}

/// The response's body. A value.
struct ResponseFlow {
    var flow = Flow()
    /// Bytes that the delegate has taken.
    var received: Int64 = 0
    /// Whether its bytes can be requested again, so that the transfer may end while it is paused.
    var isRepeatable = false
}

/// The request's body. Holding it back because the delegate has nothing to send yet does not count as a stall of the
/// origin.
struct UploadFlow {
    var flow = Flow()
    /// Whether an answer arrived before the request was complete that does not wait for the rest.
    var isRefused = false
    private var timer: LoopTimer?

    /// Seconds between two looks.
    private static let lookInterval = 0.05

    /// Has `look` find out later whether an answer has ended while the upload waits.
    mutating func lookLater(on loop: EventLoop, _ look: @escaping () -> Void) {
        let timer = timer ?? LoopTimer(on: loop, handler: look)
        timer.schedule(afterSeconds: Self.lookInterval)
        self.timer = timer
    }

    mutating func stopLooking() {
        timer?.cancel()
        timer = nil
    }
}
