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
