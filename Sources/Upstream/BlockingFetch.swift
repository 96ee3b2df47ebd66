import CCurl

/// One GET by a program that has nothing else to do meanwhile, such as a command that asks the running proxy.
/// No address policy: the caller names the address.
package enum BlockingFetch {
    /// - Parameters:
    ///   - timeout: seconds for the whole exchange.
    /// - Throws: `UpstreamError` where no response came, or none to its end. Any status is a response; none is followed.
    package static func get(url text: String, timeout: Double) throws(UpstreamError) -> (status: Int, body: [UInt8]) {
        guard let url = UpstreamURL(text) else { throw .badURL(text) }
        let easy = EasyHandle()
        var settings = UpstreamSettings()
        settings.connectTimeout = min(settings.connectTimeout, timeout)
        easy.setUp(url: url.text, settings: settings)
        easy.set(UpstreamRequest(url: text), fields: .init(), userAgent: settings.userAgent)
        easy.set(CURLOPT_TIMEOUT_MS, max(1, Int(timeout * 1000)))
        let body = Body()
        easy.set(CURLOPT_WRITEDATA, pointer: Unmanaged.passUnretained(body).toOpaque())
        reel_curl_set_data_callback(easy.curl, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            let body = Unmanaged<Body>.fromOpaque(context!).takeUnretainedValue()
            body.bytes.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: size * count))
            return size * count
        }
        let code = withExtendedLifetime(body) { curl_easy_perform(easy.curl) }
        var status = 0
        reel_curl_get_long(easy.curl, CURLINFO_RESPONSE_CODE, &status)
        guard code == CURLE_OK else {
            let phase: UpstreamError.Phase = status > 0 ? .body : easy.isConnected ? .response : .connect
            throw UpstreamError(code, detail: easy.detail, host: url.host, phase: phase)
        }
        return (status, body.bytes)
    }

    private final class Body {
        var bytes: [UInt8] = []
    }
}
