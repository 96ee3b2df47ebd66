import Foundation

extension ScriptedOrigin {
    /// What an origin does with the requests for one path: a well-behaved server until told otherwise. It is read when
    /// a request has arrived, so a change concerns the requests that follow, and the gates also those that wait.
    package struct Behaviour: Sendable {
        // MARK: The resource

        package var media: Media?
        /// The resource, where there is no `media`; and the body that goes with `status`.
        package var body: [UInt8]?
        /// The resource is what this file has when a request comes, in place of `body`; nothing, where there is no such
        /// file. For what another program writes meanwhile.
        package var file: String?
        /// Whether the time of the file's last change is its `Last-Modified`.
        package var isFileDated = false
        /// With its quotes, and `W/` if weak.
        package var etag: String?
        /// An HTTP date, as it goes on the wire.
        package var lastModified: String?
        package var contentType: String?
        /// After so many requests for the path, counted from the first since the origin began, another generation is
        /// served. `Last-Modified` stays, so set it to `nil` where the entity tag is to decide.
        package var changeAfterRequests: (count: Int, media: Media, etag: String)?

        /// Each request gets the next of these, and begins again after the last: an origin that stitches advertisements
        /// into each answer. An `etag` gets the number of the version added.
        package var versions: [Media] = []
        /// Each request is redirected to the next of these.
        package var redirects: [String] = []

        // MARK: Answers

        /// Answers with this status and `body`, without regard to range or conditions.
        package var status: Int?
        /// How many requests `status` is for; the path then behaves. `nil`: all.
        package var statusTimes: Int?
        /// Seconds, for `Retry-After`.
        package var retryAfter: Int?
        /// Answers 302 (or `status`) with this `Location`.
        package var redirect: String?
        /// Answers 403 without this cookie, or with a redirect to `elsewhere`.
        package var gate: (cookie: String, elsewhere: String?)?
        /// Further fields. One replaces what the origin itself would send under that name, true or not.
        package var headers: [(String, String)] = []
        /// Responses before the final one: their statuses and fields.
        package var interims: [(status: Int, headers: [(String, String)])] = []
        /// Answers a range with 200 and the whole.
        package var ignoresRange = false
        /// Sends neither `ETag` nor `Last-Modified`, and heeds no condition.
        package var noValidators = false
        /// Answers before the request's body is read. It is read after that.
        package var answersEarly = false
        /// Sends the range asked for under a wrong `Content-Range`.
        package var wrongContentRange: ContentRangeFault?
        /// Answers a range with so many bytes at most, and says so.
        package var longestPart: Int64?
        /// Answers a range with so many bytes more than asked for, if there are any, and says so.
        package var partSurplus: Int64 = 0
        /// Claims `Content-Encoding: gzip`; the bytes are the plain ones.
        package var gzipEncoded = false

        /// Sent as it is, and then the connection is closed: a 206 to requests for a range, anything else to all.
        package var raw: [UInt8]?

        // MARK: Framing

        /// `Transfer-Encoding: chunked` and no `Content-Length`.
        package var chunkedEncoding = false
        /// Neither length nor chunks: the body ends with the connection.
        package var closeDelimited = false
        /// The media's content goes on for ever, past its size, under 200 and without a length.
        package var endless = false

        // MARK: Faults

        /// Closes the connection after so many body bytes of a response that has more.
        package var cutAfter: Int64?
        /// Closes the connection instead of answering.
        package var closesBeforeHead = false
        /// How many responses `cutAfter` and `closesBeforeHead` still apply to; the path then behaves. Counts down.
        package var cutTimes = 1
        /// Cuts by a reset instead of an orderly end. The client may lose bytes that were sent before it.
        package var cutsWithReset = false

        /// A signed link: the first response with more body bytes than this is cut after so many, and all requests from
        /// then on get 403.
        package var expiresAfter: Int64?

        // MARK: Time

        /// The head is sent so long after the request.
        package var latency: Duration?
        /// The body's pace.
        package var bytesPerSecond: Int64?
        /// The body waits after so many bytes until it is released.
        package var stallAfter: Int64?
        /// The response waits before its head until it is released.
        package var holdHead = false
        /// The body waits before its first byte until it is released; the head is sent.
        package var holdBody = false

        package init() {}
    }

    /// How a `Content-Range` is wrong. The body is that of the range asked for in each case.
    package enum ContentRangeFault: Sendable {
        /// Start and end are moved by so many bytes.
        case shifted(by: Int64)
        /// The end alone is moved.
        case endShifted(by: Int64)
        /// The complete length is this.
        case total(Int64)
        /// The complete length is `*`. Allowed by RFC 9110 §14.4, and of no use to a cache that has none.
        case unknownTotal
        /// There is no such field.
        case missing
        /// The field's value is this.
        case value(String)
    }
}

extension ScriptedOrigin.ContentRangeFault {
    /// The faulty field value for the half-open `range`, or `nil` for none.
    func value(for range: Range<Int64>, of size: Int64) -> String? {
        let (first, last) = (range.lowerBound, range.upperBound - 1)
        switch self {
        case .shifted(let by): return "bytes \(first + by)-\(last + by)/\(size)"
        case .endShifted(let by): return "bytes \(first)-\(last + by)/\(size)"
        case .total(let total): return "bytes \(first)-\(last)/\(total)"
        case .unknownTotal: return "bytes \(first)-\(last)/*"
        case .missing: return nil
        case .value(let value): return value
        }
    }
}
