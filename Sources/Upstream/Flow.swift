/// One direction of a transfer: whether its bytes are held back, by who owns it and in curl. A value.
struct Flow {
    /// Nobody wants bytes now.
    var isHeld = false
    /// Curl has been told.
    var isHeldInCurl = false
    /// A callback that lets them go on is due.
    var isResuming = false

    /// For `curl_easy_pause`: the direction's bit where it is held, and none where it goes on.
    func bits(_ direction: Int32) -> Int32 { isHeldInCurl ? direction : 0 }
}
