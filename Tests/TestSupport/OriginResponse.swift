import Foundation

/// What an origin answers with: decided from request and behaviour alone, before a byte is sent.
struct OriginResponse: Sendable {
    enum Framing: Sendable, Equatable {
        case length, chunked, untilClose
    }

    /// Where body bytes come from.
    enum Content: Sendable {
        case media(Media)
        case bytes([UInt8])

        var size: Int64 {
            switch self {
            case .media(let media): media.size
            case .bytes(let bytes): Int64(bytes.count)
            }
        }
    }

    private(set) var status: Int
    private(set) var fields = HeaderList()
    private(set) var content = Content.bytes([])
    /// The part of the content that is the body, half-open. Empty where the response has none.
    private(set) var body: Range<Int64> = 0..<0
    private(set) var framing = Framing.length
    /// Whether anything follows the head, be it the end of a chunked body.
    private(set) var hasBody = false
    /// Whether the connection ends with this response.
    private(set) var closes: Bool

    /// - Parameters:
    ///   - behaviour: that for this request: its counted parts have been applied.
    ///   - time: for `Date`.
    init(to request: OriginRequestHead, _ behaviour: ScriptedOrigin.Behaviour, time: time_t) {
        status = 200
        closes = request.wantsClose
        decide(request, behaviour)
        frame(request, behaviour)
        decorate(behaviour, time)
        hasBody = request.method != "HEAD" && (framing != .length || !body.isEmpty)
    }

    var head: String {
        "HTTP/1.1 \(status) \(Self.reasons[status] ?? "Scripted")\r\n"
            + fields.fields.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n"
    }

    // MARK: - Status and body

    private mutating func decide(_ request: OriginRequestHead, _ behaviour: ScriptedOrigin.Behaviour) {
        if let gate = behaviour.gate,
            !(request.headers["Cookie"]?.components(separatedBy: "; ").contains(gate.cookie) ?? false)
        {
            guard let elsewhere = gate.elsewhere else { return answer(403, Array("no cookie\n".utf8)) }
            answer(302, [])
            return fields.append("Location", elsewhere)
        }
        if let location = behaviour.redirect {
            answer(behaviour.status ?? 302, behaviour.body ?? [])
            return fields.append("Location", location)
        }
        if let status = behaviour.status { return answer(status, behaviour.body ?? []) }
        guard let content = behaviour.content else { return answer(404, Array("no such path\n".utf8)) }
        guard ["GET", "HEAD"].contains(request.method) else { return answer(405, []) }
        appendValidators(behaviour)
        if behaviour.isUnchanged(for: request) { return answer(304, []) }
        self.content = content
        if behaviour.endless, case .media = content {
            body = 0..<Int64.max
        } else {
            select(request, behaviour, content)
        }
    }

    private mutating func answer(_ status: Int, _ bytes: [UInt8]) {
        self.status = status
        content = .bytes(bytes)
        body = 0..<Int64(bytes.count)
    }

    private mutating func select(
        _ request: OriginRequestHead, _ behaviour: ScriptedOrigin.Behaviour, _ content: Content
    ) {
        let size = content.size
        if !behaviour.ignoresRange { fields.append("Accept-Ranges", "bytes") }
        switch behaviour.selection(for: request, size: size) {
        case .whole:
            body = 0..<size
        case .unsatisfiable:
            answer(416, [])
            fields.append("Content-Range", "bytes */\(size)")
        case .part(let asked):
            status = 206
            let range =
                asked
                .lowerBound..<Swift.min(
                    size, asked.upperBound + behaviour.partSurplus, asked.lowerBound + (behaviour.longestPart ?? size))
            body = range
            let right = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
            if let value = behaviour.wrongContentRange.map({ $0.value(for: range, of: size) }) ?? right {
                fields.append("Content-Range", value)
            }
        }
    }

    // MARK: - Framing and fields

    private mutating func frame(_ request: OriginRequestHead, _ behaviour: ScriptedOrigin.Behaviour) {
        if status < 200 || status == 204 || status == 304 {
            body = 0..<0
        } else if behaviour.chunkedEncoding && !request.isHTTP10 {
            framing = .chunked
            fields.append("Transfer-Encoding", "chunked")
        } else if behaviour.closeDelimited || behaviour.endless || behaviour.chunkedEncoding {
            framing = .untilClose
            closes = true
        } else {
            fields.append("Content-Length", "\(body.count)")
        }
        if closes {
            fields.append("Connection", "close")
        } else if request.isHTTP10 {
            fields.append("Connection", "keep-alive")
        }
    }

    private mutating func decorate(_ behaviour: ScriptedOrigin.Behaviour, _ time: time_t) {
        fields.append("Date", HTTPDate.string(time))
        if let type = behaviour.contentType, status != 304 { fields.append("Content-Type", type) }
        if behaviour.gzipEncoded { fields.append("Content-Encoding", "gzip") }
        if let seconds = behaviour.retryAfter { fields.append("Retry-After", "\(seconds)") }
        fields.replace(with: behaviour.headers)
    }

    private mutating func appendValidators(_ behaviour: ScriptedOrigin.Behaviour) {
        if behaviour.noValidators { return }
        if let etag = behaviour.etag { fields.append("ETag", etag) }
        if let date = behaviour.lastModified { fields.append("Last-Modified", date) }
    }

    private static let reasons = [
        200: "OK", 206: "Partial Content", 204: "No Content", 301: "Moved Permanently", 302: "Found", 303: "See Other",
        304: "Not Modified",
        307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
        404: "Not Found",
        405: "Method Not Allowed", 410: "Gone", 412: "Precondition Failed", 416: "Range Not Satisfiable",
        429: "Too Many Requests",
        500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    ]
}

extension ScriptedOrigin.Behaviour {
    var content: OriginResponse.Content? { media.map { .media($0) } ?? body.map { .bytes($0) } }

    /// RFC 9110 §13.2.2: If-None-Match decides where it is there, else If-Modified-Since.
    func isUnchanged(for request: OriginRequestHead) -> Bool {
        if noValidators { return false }
        if let tags = request.headers["If-None-Match"] {
            return etag.map { EntityTags.weaklyMatch($0, tags) } ?? (tags == "*")
        }
        guard let since = request.headers["If-Modified-Since"], let lastModified else { return false }
        guard let sinceTime = HTTPDate.time(since), let modifiedTime = HTTPDate.time(lastModified) else {
            return since == lastModified
        }
        return modifiedTime <= sinceTime
    }

    func selection(for request: OriginRequestHead, size: Int64) -> OriginRange.Selection {
        guard request.method == "GET", !ignoresRange, let range = request.range, ifRangeHolds(for: request) else {
            return .whole
        }
        return range.selection(size: size)
    }

    /// RFC 9110 §13.1.5: the strong validator itself or the very date; a weak validator never matches.
    private func ifRangeHolds(for request: OriginRequestHead) -> Bool {
        guard let condition = request.headers["If-Range"] else { return true }
        if noValidators || condition.hasPrefix("W/") { return false }
        return condition == etag || condition == lastModified
    }
}

enum EntityTags {
    /// Whether `etag` is among the list in a field, whose marks of weakness do not count (RFC 9110 §8.8.3.2).
    static func weaklyMatch(_ etag: String, _ list: String) -> Bool {
        if list.trimmingCharacters(in: .whitespaces) == "*" { return true }
        return list.split(separator: ",").contains { opaque($0.trimmingCharacters(in: .whitespaces)) == opaque(etag) }
    }

    private static func opaque(_ etag: String) -> Substring { etag.hasPrefix("W/") ? etag.dropFirst(2) : etag[...] }
}

enum HTTPDate {
    static func string(_ time: time_t) -> String {
        var time = time, parts = tm(), text = [CChar](repeating: 0, count: 64)
        gmtime_r(&time, &parts)
        let count = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Seconds since 1970 of an IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func time(_ text: String) -> time_t? {
        let parts = text.split(separator: " ").map(String.init)
        guard parts.count == 6, parts[5] == "GMT", let day = Int32(parts[1]), let year = Int32(parts[3]) else {
            return nil
        }
        guard let month = months.firstIndex(of: parts[2]) else { return nil }
        let clock = parts[4].split(separator: ":").compactMap { Int32($0) }
        guard clock.count == 3 else { return nil }
        var date = tm()
        (date.tm_year, date.tm_mon, date.tm_mday) = (year - 1900, Int32(month), day)
        (date.tm_hour, date.tm_min, date.tm_sec) = (clock[0], clock[1], clock[2])
        return timegm(&date)
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
