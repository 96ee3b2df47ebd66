import CCurl

/// The TLS sessions of one loop's connections, which let the next connection to the same host shake hands in one round
/// trip. curl would keep them in each easy handle, and these live for one exchange only. Loop-bound, and so without
/// locks.
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
