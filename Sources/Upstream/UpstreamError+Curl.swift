import CCurl

extension UpstreamError {
    /// Translates curl's code for a transfer that was in `phase`.
    init(_ code: CURLcode, detail: String, host: String, phase: Phase) {
        let detail = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
        switch code {
        case CURLE_URL_MALFORMAT: self = .badURL(host)
        case CURLE_COULDNT_RESOLVE_HOST: self = .cannotResolve(host: host)
        case CURLE_COULDNT_CONNECT: self = .cannotConnect(host: host, detail: detail)
        case CURLE_OPERATION_TIMEDOUT: self = .timedOut(host: host, phase: phase)
        // OpenSSL's SSL_ERROR_SYSCALL: the connection was cut during the handshake, which says nothing about
        // certificates.
        case CURLE_SSL_CONNECT_ERROR where detail.contains("SSL_ERROR_SYSCALL") || detail.contains("Connection reset"):
            self = .cannotConnect(host: host, detail: detail)
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT,
            CURLE_SSL_CRL_BADFILE:
            self = .tls(host: host, detail: detail)
        // Reported for a field line that curl cannot read: one without a name, or a folded first line.
        case CURLE_BAD_FUNCTION_ARGUMENT where phase == .response:
            self = .protocolViolation(
                detail: "the head of the response has an invalid field line: it is folded or has no name")
        // curl reports a header line of more than 100 KiB as out of memory.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_OUT_OF_MEMORY:
            self = .protocolViolation(detail: detail)
        default: self = .broken(detail: detail)
        }
    }
}
