import CCurl

/// What one loop's connections remember of TLS, so that the next one to the same host shakes hands in one round trip.
/// Curl would keep that in each easy handle, and these live for one exchange. Loop-bound, hence without locks.
final class TLSSessions {
    let share: UnsafeMutableRawPointer

    init() {
        CurlLibrary.start()
        guard let share = curl_share_init() else { fatalError("curl_share_init: out of memory") }
        self.share = share
        let code = reel_curl_share(share, CURL_LOCK_DATA_SSL_SESSION)
        precondition(code == CURLSHE_OK, "curl_share_setopt: \(String(cString: curl_share_strerror(code)))")
    }

    deinit { curl_share_cleanup(share) }
}
