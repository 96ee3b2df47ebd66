import CCurl
import Glibc
import HTTPModel

/// One of curl's easy handles, with the memory that curl borrows while it is in use. Loop-bound.
///
/// It serves one exchange only: libcurl 7.88.1 keeps a pointer to the freed last field of the previous answer, and
/// writes there if the next head begins with a folded line (`curl_easy_reset` does not clear it). Connections and names
/// belong to the multi handle anyway.
final class EasyHandle {
    let curl: UnsafeMutableRawPointer
    private let sessions: TLSSessions?
    private let errorText: UnsafeMutablePointer<CChar>
    private var origin: ReadOrigin?
    private var lines: UnsafeMutablePointer<curl_slist>?
    private var resolved: UnsafeMutablePointer<curl_slist>?

    /// - Parameter sessions: the TLS sessions of the same loop; nil for a full handshake on every connection.
    init(_ sessions: TLSSessions? = nil) {
        CurlLibrary.start()
        self.sessions = sessions
        guard let curl = curl_easy_init() else { fatalError("curl_easy_init: out of memory") }
        self.curl = curl
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(to: 0)
        if let sessions { set(CURLOPT_SHARE, pointer: sessions.share) }
    }

    deinit {
        curl_easy_cleanup(curl)
        curl_slist_free_all(lines)
        curl_slist_free_all(resolved)
        errorText.deallocate()
    }

    /// curl's text about its last error; the system's where a connection was refused, as that is shorter.
    var detail: String {
        let text = errorText[0] == 0 ? "" : String(cString: errorText)
        var code = 0
        guard text.hasPrefix("Failed to connect"), reel_curl_get_long(curl, CURLINFO_OS_ERRNO, &code) == CURLE_OK,
            code == Int(ECONNREFUSED)
        else { return text }
        return String(errno: ECONNREFUSED).lowercased()
    }

    /// Whether the connection is established, so that the request is being sent or has been sent.
    var isConnected: Bool { microsecondsToConnect > 0 }

    /// Whether the answer uses HTTP/2; known with its head.
    var isHTTP2: Bool {
        var version = 0
        reel_curl_get_long(curl, CURLINFO_HTTP_VERSION, &version)
        return version == CURL_HTTP_VERSION_2_0
    }

    /// The time from the start of the hop until the request could be sent; 0 before that.
    var microsecondsToConnect: Int64 {
        var time: curl_off_t = 0
        reel_curl_get_off(curl, CURLINFO_PRETRANSFER_TIME_T, &time)
        return Int64(time)
    }

    func set(_ option: CURLoption, _ value: Int) { check(reel_curl_set_long(curl, option, value), option) }
    func set(_ option: CURLoption, _ value: String?) {
        guard let value else { return check(reel_curl_set_string(curl, option, nil), option) }
        // To pass the string itself would copy it, even where curl copies it anyway.
        value.withCString { check(reel_curl_set_string(curl, option, $0), option) }
    }
    func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) {
        check(reel_curl_set_pointer(curl, option, pointer), option)
    }

    private func check(_ code: CURLcode, _ option: CURLoption) {
        precondition(code == CURLE_OK, "curl option \(option.rawValue): \(String(cString: curl_easy_strerror(code)))")
    }

    /// Sets the options that all requests share. Without an explicit setting, curl would use a proxy from the
    /// environment, and the address policy would then see the proxy's address instead of the origin's.
    func setUp(url: String, settings: UpstreamSettings) {
        errorText[0] = 0
        set(CURLOPT_ERRORBUFFER, pointer: errorText)
        set(CURLOPT_URL, url)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_FOLLOWLOCATION, 0)
        // Unless `go` names a proxy. Otherwise the environment decides.
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NOPROXY, "")
        set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS)
        set(CURLOPT_TCP_NODELAY, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(saturating: settings.connectTimeout * 1000)))
        set(CURLOPT_BUFFERSIZE, settings.receiveBufferBytes)
        // Otherwise removing a handle would block the loop until its name look-up ends.
        set(CURLOPT_QUICK_EXIT, 1)
        if let caFile = settings.caFile {
            set(CURLOPT_CAINFO, caFile)
            set(CURLOPT_CAPATH, nil)
        }
    }

    /// Sets these options, and an origin that curl has read before.
    func setUp(_ origin: ReadOrigin, settings: UpstreamSettings) {
        self.origin = origin
        setUp(url: origin.text, settings: settings)
        if let handle = origin.handle { set(CURLOPT_CURLU, pointer: UnsafeMutableRawPointer(handle)) }
    }

    /// Sets the addresses of the URL's host, so that curl looks up none. They replace those that curl remembers.
    func set(addresses: [String], of url: UpstreamURL) {
        guard let name = url.name, !addresses.isEmpty else { return }
        let list = addresses.map { $0.contains(":") ? "[\($0)]" : $0 }.joined(separator: ",")
        // With and without the dot that ends a full name: versions of curl differ in which one they look for.
        for name in Set([name, name.hasSuffix(".") ? String(name.dropLast()) : name]) {
            // The plus lets the entry expire.
            resolved = curl_slist_append(resolved, "+\(name):\(url.port):\(list)")
        }
        check(reel_curl_set_list(curl, CURLOPT_RESOLVE, resolved), CURLOPT_RESOLVE)
    }

    /// Lets curl send cookies, and take those that the answer sets.
    /// - Parameters:
    ///   - lines: of a cookie file.
    ///   - others: the value of the client's own `Cookie`, which curl adds to them.
    func set(cookies lines: [String], besides others: String?) {
        set(CURLOPT_COOKIEFILE, "")
        for line in lines { reel_curl_set_string(curl, CURLOPT_COOKIELIST, line) }
        guard let others else { return }
        // One that an origin has just changed is not sent twice.
        let names = CookieJars.Jar.names(in: lines)
        let rest = others.split(separator: ";").filter { !names.contains(ASCII.trimmed($0.prefix { $0 != "=" })) }
        if !rest.isEmpty { set(CURLOPT_COOKIE, ASCII.trimmed(rest.joined(separator: ";")[...]).description) }
    }

    /// The lines of all cookies that curl has.
    var cookies: [String] {
        var list: UnsafeMutablePointer<curl_slist>?
        reel_curl_get_list(curl, CURLINFO_COOKIELIST, &list)
        defer { curl_slist_free_all(list) }
        return sequence(first: list) { $0?.pointee.next }.prefix { $0 != nil }
            .compactMap { $0.map { String(cString: $0.pointee.data) } }
    }

    /// - Parameter cookies: lines of a cookie file; nil if curl is to keep no cookies.
    func set(_ request: UpstreamRequest, fields: HeaderFields, cookies: [String]? = nil, settings: UpstreamSettings) {
        var own = setMethod(of: request)
        if let cookies {
            set(cookies: cookies, besides: cookies.isEmpty ? nil : fields.combined("Cookie"))
            if !cookies.isEmpty { own = Self.fieldsBesideCookies }
        }
        for line in fields.lines where !own.contains(line.name) { append(line.name, line.value) }
        if let span = request.span { append("Range", span.fieldValue) }
        if fields["User-Agent"] == nil { append("User-Agent", settings.userAgent) }
        // A second line counts as another element of an existing list (RFC 9110 §5.3).
        if let via = settings.via { append("Via", via) }
        check(reel_curl_set_list(curl, CURLOPT_HTTPHEADER, lines), CURLOPT_HTTPHEADER)
    }

    /// - Returns: names of the request's fields to leave out.
    private func setMethod(of request: UpstreamRequest) -> FieldNames {
        switch request.method {
        case .get, .head:
            if request.method == .head { set(CURLOPT_NOBODY, 1) }
            append("Accept-Encoding", "identity")
            return Self.fieldsOfGet
        case .other(let name):
            // For curl, an upload is a PUT whatever the method's name.
            if request.content != .none { setUpload(request.content) }
            set(CURLOPT_CUSTOMREQUEST, name)
            // On a reused connection that turns out to be closed, curl would send the request again, which nobody may
            // do with these methods (RFC 9110 §9.2.2).
            set(CURLOPT_FRESH_CONNECT, 1)
            return Self.framingFields
        }
    }

    private func setUpload(_ content: UpstreamRequest.Content) {
        set(CURLOPT_UPLOAD, 1)
        // Without a length, curl sends chunks with HTTP/1.1.
        if case .length(let length) = content {
            check(reel_curl_set_off(curl, CURLOPT_INFILESIZE_LARGE, curl_off_t(length)), CURLOPT_INFILESIZE_LARGE)
        }
        // Otherwise curl would wait a second for a 100 that few origins send.
        lines = curl_slist_append(lines, "Expect:")
    }

    private static let framingFields: FieldNames = ["host", "content-length", "transfer-encoding", "expect"]
    private static let fieldsOfGet: FieldNames = [
        "host", "content-length", "transfer-encoding", "expect", "range", "accept-encoding",
    ]
    private static let fieldsBesideCookies: FieldNames = [
        "host", "content-length", "transfer-encoding", "expect", "range", "accept-encoding", "cookie",
    ]

    /// Keeps curl from sending a field by itself.
    func removeField(_ name: String) { lines = curl_slist_append(lines, "\(name):") }

    func append(_ name: String, _ value: String) {
        // curl takes "Name:" as "leave out this field"; a semicolon means an empty field.
        var line = String(upTo: name.utf8.count + value.utf8.count + 2) { line in
            line.append(text: name)
            line.append(value.isEmpty ? ";" : ": ")
            line.append(text: value)
        }
        // A line end in a value would start another field: leave out such a line.
        let isOneLine = line.withUTF8 { line in !line.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 } }
        if isOneLine, !name.isEmpty { line.withCString { lines = curl_slist_append(lines, $0) } }
    }
}

extension EasyHandle {
    /// A URL with the path `/`, as curl reads it: it would read and write it for each request. Loop-bound.
    final class ReadOrigin {
        let text: String
        /// Nil if curl cannot read it, as it will say.
        fileprivate let handle: OpaquePointer?

        init(_ text: String) {
            self.text = text
            let read = curl_url()
            guard curl_url_set(read, CURLUPART_URL, text, 0) != CURLUE_OK else {
                handle = read
                return
            }
            curl_url_cleanup(read)
            handle = nil
        }

        deinit { curl_url_cleanup(handle) }
    }
}

enum CurlLibrary {
    private static let isStarted: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Initializes curl, once in the process.
    static func start() {
        precondition(isStarted, "curl_global_init failed")
    }
}
