import CCurl
import HTTPModel

/// One of curl's easy handles, with what curl borrows from us while it is in use. Loop-bound.
///
/// For one exchange only: libcurl 7.88.1 keeps a pointer to the last field of the answer before, which it has freed,
/// and a folded line at the beginning of the next head is written there (`curl_easy_reset` does not forget it).
/// Connections and names are the multi handle's anyway.
final class EasyHandle {
    let curl: UnsafeMutableRawPointer
    private let sessions: TLSSessions?
    private let errorText: UnsafeMutablePointer<CChar>
    private var lines: UnsafeMutablePointer<curl_slist>?
    private var resolved: UnsafeMutablePointer<curl_slist>?

    /// - Parameter sessions: those of the same loop; nil: every connection shakes hands in full.
    init(_ sessions: TLSSessions? = nil) {
        CurlLibrary.start()
        self.sessions = sessions
        guard let curl = curl_easy_init() else { fatalError("curl_easy_init: out of memory") }
        self.curl = curl
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        if let sessions { set(CURLOPT_SHARE, pointer: sessions.share) }
    }

    deinit {
        curl_easy_cleanup(curl)
        curl_slist_free_all(lines)
        curl_slist_free_all(resolved)
        errorText.deallocate()
    }

    /// What curl has to say about its last error.
    var detail: String {
        errorText[0] == 0 ? "" : String(cString: errorText)
    }

    /// A connection is made and the request is going out, or has gone.
    var isConnected: Bool { microsecondsToConnect > 0 }

    /// Whether the answer came by HTTP/2; known with its head.
    var isHTTP2: Bool {
        var version = 0
        reel_curl_get_long(curl, CURLINFO_HTTP_VERSION, &version)
        return version == CURL_HTTP_VERSION_2_0
    }

    /// From the start of the hop until the request could go out; 0 before that.
    var microsecondsToConnect: Int64 {
        var time: curl_off_t = 0
        reel_curl_get_off(curl, CURLINFO_PRETRANSFER_TIME_T, &time)
        return Int64(time)
    }

    func set(_ option: CURLoption, _ value: Int) { check(reel_curl_set_long(curl, option, value), option) }
    func set(_ option: CURLoption, _ value: String?) { check(reel_curl_set_string(curl, option, value), option) }
    func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) {
        check(reel_curl_set_pointer(curl, option, pointer), option)
    }

    private func check(_ code: CURLcode, _ option: CURLoption) {
        precondition(code == CURLE_OK, "curl option \(option.rawValue): \(String(cString: curl_easy_strerror(code)))")
    }

    /// What is the same for every request. Without a word about it curl would take a proxy from the environment; the
    /// address check would then see the proxy's address and not the origin's.
    func setUp(url: String, settings: UpstreamSettings) {
        errorText[0] = 0
        set(CURLOPT_ERRORBUFFER, pointer: errorText)
        set(CURLOPT_URL, url)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS)
        set(CURLOPT_TCP_NODELAY, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(saturating: settings.connectTimeout * 1000)))
        set(CURLOPT_BUFFERSIZE, settings.receiveBufferBytes)
        // Else removing a handle waits for its running name look-up, and the loop with it.
        set(CURLOPT_QUICK_EXIT, 1)
        if let caFile = settings.caFile {
            set(CURLOPT_CAINFO, caFile)
            set(CURLOPT_CAPATH, nil)
        }
    }

    /// The addresses of the URL's host, so that curl looks up none. They take the place of what it has remembered.
    func set(addresses: [String], of url: UpstreamURL) {
        guard let name = url.name, !addresses.isEmpty else { return }
        let list = addresses.map { $0.contains(":") ? "[\($0)]" : $0 }.joined(separator: ",")
        // With the dot that ends a full name and without it: which of them it is looked for by, differs between
        // versions.
        for name in Set([name, name.hasSuffix(".") ? String(name.dropLast()) : name]) {
            // The plus lets it be forgotten in time.
            resolved = curl_slist_append(resolved, "+\(name):\(url.port):\(list)")
        }
        check(reel_curl_set_list(curl, CURLOPT_RESOLVE, resolved), CURLOPT_RESOLVE)
    }

    func set(_ request: UpstreamRequest, fields: HeaderFields, settings: UpstreamSettings) {
        let own = setMethod(of: request)
        for line in fields.lines where !own.contains(line.name.lowercased()) { append(line.name, line.value) }
        if let span = request.span { append("Range", span.fieldValue) }
        if fields["User-Agent"] == nil { append("User-Agent", settings.userAgent) }
        // A line of its own is one more element of the list that there may be already (RFC 9110 §5.3).
        if let via = settings.via { append("Via", via) }
        check(reel_curl_set_list(curl, CURLOPT_HTTPHEADER, lines), CURLOPT_HTTPHEADER)
    }

    /// - Returns: the fields that are not taken from the request's, in lower case.
    private func setMethod(of request: UpstreamRequest) -> Set<String> {
        switch request.method {
        case .get, .head:
            if request.method == .head { set(CURLOPT_NOBODY, 1) }
            append("Accept-Encoding", "identity")
            return Self.framingFields.union(["range", "accept-encoding"])
        case .other(let name):
            // An upload is a PUT of curl's, under any name.
            if request.content != .none { setUpload(request.content) }
            set(CURLOPT_CUSTOMREQUEST, name)
            // On a connection that is used again curl may find that it was closed, and then sends the request once
            // more: of these methods nobody may (RFC 9110 §9.2.2).
            set(CURLOPT_FRESH_CONNECT, 1)
            return Self.framingFields
        }
    }

    private func setUpload(_ content: UpstreamRequest.Content) {
        set(CURLOPT_UPLOAD, 1)
        // Without a length curl sends chunks, in HTTP/1.1.
        if case .length(let length) = content {
            check(reel_curl_set_off(curl, CURLOPT_INFILESIZE_LARGE, curl_off_t(length)), CURLOPT_INFILESIZE_LARGE)
        }
        // Curl would wait a second for a 100 that few origins send.
        lines = curl_slist_append(lines, "Expect:")
    }

    private static let framingFields: Set<String> = ["host", "content-length", "transfer-encoding", "expect"]

    private func append(_ name: String, _ value: String) {
        // A line end in a value would make a second field of its rest: such a line does not go out.
        guard !name.isEmpty, !(name + value).utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 }) else {
            return
        }
        // To curl "Name:" means "not this field"; the semicolon means an empty one.
        lines = curl_slist_append(lines, value.isEmpty ? "\(name);" : "\(name): \(value)")
    }
}

enum CurlLibrary {
    private static let isStarted: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Once in the process, before anything else of curl's.
    static func start() {
        precondition(isStarted, "curl_global_init failed")
    }
}
