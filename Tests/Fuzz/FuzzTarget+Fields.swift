import Activity
import CachePolicy
import HTTPModel

extension FuzzTarget {
    static let fields = [
        FuzzTarget(
            name: "range",
            seeds: [
                "bytes=0-", "bytes=0-9", "bytes=-5", "bytes=1-2, 4-6 ,-7,9-", "items=0-1", "bytes=9223372036854775807-",
            ], run: range),
        FuzzTarget(
            name: "accept",
            seeds: [
                "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", ";q=\"1\",,=;",
            ], run: { _ = ExpositionFormat(accept: $0.text) }),
        FuzzTarget(
            name: "content-range",
            seeds: ["bytes 0-9/100", "bytes */100", "bytes 5-5/*", "bytes 9223372036854775806-9223372036854775806/*"],
            run: contentRange),
        FuzzTarget(
            name: "conditions",
            seeds: [
                "\"a\", W/\"b\"\n*\n\"a\"\nSun, 06 Nov 1994 08:49:37 GMT",
                "*\n\"b\"\nSun, 06 Nov 1994 08:49:37 GMT\nSunday, 06-Nov-94 08:49:37 GMT",
            ],
            run: conditions),
        FuzzTarget(
            name: "cache-control",
            seeds: [
                "max-age=60, no-cache=\"a, b\", private\n12\nSun, 06 Nov 1994 08:49:37 GMT",
                "max-stale, min-fresh=9999999999999999999, immutable\n-1\n0",
                "max-age=60, private=\"a\", x=(1 2);y, z=:YQ==:, no-store=?0", "DE-de;q=0.80, *;q=0, en;q=1.000",
            ],
            run: cacheControl),
        FuzzTarget(
            name: "date",
            seeds: ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"],
            run: date),
        FuzzTarget(
            name: "content-disposition",
            seeds: [
                "attachment; filename=\"a b.mp4\"; filename*=UTF-8''a%20b.mp4", "inline;filename=x\\\"y",
                "attachment; filename=\"../../etc/passwd\"",
            ],
            run: contentDisposition),
        FuzzTarget(
            name: "forwarded",
            seeds: [
                "for=192.0.2.60;proto=http;by=203.0.113.43;host=a\n192.0.2.1, unknown\nhttps\na:1\n8443",
                "for=\"[2001:db8::17]:4711\", for=_x;secret=\"\\\"\"\n[::1]:5",
                "PROXY TCP4 192.0.2.1 198.51.100.2 4660 443\r\n",
                "\r\n\r\n\0\r\nQUIT\n\u{21}\u{11}\0\u{c}abcdefghijkl",
            ],
            run: forwarded),
        FuzzTarget(
            name: "other-fields",
            seeds: ["1.1 reelcache, 1.0 a (b)\nAccept-Language, *\n120\nreelcache; hit", "timeout=5"], run: otherFields),
    ]

    private static func range(_ input: [UInt8]) throws {
        let specs: [ByteRangeSpec]
        switch RangeRequest.parse(input.text) {
        case .none, .malformed: return
        case .single(let spec): specs = [spec]
        case .multiple(let several): specs = several
        }
        for length in Int64.edges where length >= 0 {
            for spec in specs {
                guard let range = spec.resolve(length: length) else { continue }
                try hold(
                    !range.isEmpty && range.lowerBound >= 0 && range.upperBound <= length,
                    "\(spec) of \(length) is \(range)")
            }
            guard case .parts(let parts) = RangeSet(specs, length: length) else { continue }
            try hold(
                parts.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= length },
                "\(parts) of \(length)")
        }
        _ = RangeSet.opening(specs)
    }

    private static func contentRange(_ input: [UInt8]) throws {
        guard let stated = ContentRange(parsing: input.text) else { return }
        try hold(ContentRange(parsing: stated.fieldValue) == stated, "\(stated) reads back as another")
        guard let range = stated.range else { return }
        try hold(
            !range.isEmpty && range.upperBound <= stated.total ?? .max && range.upperBound <= ByteNumber.greatest + 1,
            "\(stated)")
        guard let geometry = ChunkGeometry(chunkSize: 65536) else { return }
        let rounded = geometry.roundedOut(range, length: stated.total)
        try hold(
            rounded.lowerBound <= range.lowerBound && rounded.upperBound >= range.upperBound,
            "\(range) rounds to \(rounded)")
    }

    /// If-None-Match, If-Match, If-Range, a date.
    private static func conditions(_ input: [UInt8]) throws {
        let lines = input.lines
        var request = "GET / HTTP/1.1\r\nHost: a\r\n"
        for (name, value) in zip(
            ["If-None-Match", "If-Match", "If-Range", "If-Modified-Since", "If-Unmodified-Since"], lines)
        { request += "\(name): \(value)\r\n" }
        guard case .complete(let head, _) = Array((request + "\r\n").utf8).withUnsafeBytes({ RequestParser.parse($0) })
        else { return }
        for stored in [
            RepresentationValidators(etag: EntityTag(parsing: lines[0]), lastModified: 784_111_777),
            RepresentationValidators(lastModified: .min),
        ] {
            _ = Conditional.evaluate(head, against: stored)
            _ = Conditional.rangeApplies(head, against: stored, isDateStrong: true)
        }
        for line in lines {
            guard let tag = EntityTag(parsing: line) else { continue }
            try hold(EntityTag(parsing: tag.fieldValue) == tag, "\(tag) reads back as another")
            try hold(tag.weaklyMatches(tag), "\(tag) does not match itself")
        }
    }

    /// Cache-Control, Age, and dates.
    private static func cacheControl(_ input: [UInt8]) throws {
        let lines = input.lines
        var fields = HeaderFields()
        for (name, value) in zip(["Cache-Control", "Age", "Date", "Expires", "Last-Modified", "Vary"], lines) {
            fields.append(name, value)
        }
        try useHead(fields, status: 200)
        for control in [CacheControl(parsing: lines[0]), CacheControl(targeted: lines[0])].compactMap({ $0 }) {
            for seconds in [
                control.maxAge, control.sMaxAge, control.staleIfError, control.staleWhileRevalidate, control.maxStale,
                control.minFresh,
            ] {
                try hold(seconds ?? 0 >= 0, "a negative lifetime of \(seconds ?? 0)")
            }
        }
        try languages(lines[0])
        _ = RequestDirectives(cacheControl: lines[0], pragma: lines.last)
    }

    /// The form in which values are compared has that form itself.
    private static func languages(_ value: String) throws {
        let variant = Variant(
            response: HeaderFields([.init(name: "Vary", value: "Accept-Language")]),
            request:
                HeaderFields([.init(name: "Accept-Language", value: value)])
        ) { $0 }
        guard let form = variant.fields.first?.value, !form.hasPrefix(" ") else { return }
        try hold(Variant.Field(stored: "accept-language", value: form).value == form, "\(form) has another form")
    }

    /// All that is decided by a response's head, at all edges of time.
    static func useHead(_ fields: HeaderFields, status: Int) throws {
        for now in Int64.edges {
            for asked in [now, 0, .max, .min] {
                let times = ResponseTimes(fields, requestedAt: asked, receivedAt: now)
                let freshness = Freshness.of(fields, times, ttl: nil, now: asked)
                _ = (freshness.isFresh, freshness.remaining, freshness.staleness, freshness.text)
                try hold(times.age(at: now) >= 0, "an age below 0")
                _ =
                    Freshness.of(fields, ResponseTimes(validatedAt: now, initialAge: asked), ttl: now, now: asked)
                    .staleness
            }
            _ = RetryAfter.seconds(fields["Retry-After"], now: now)
        }
        _ = (
            Combining.condition(for: fields), Freshening.conditions(for: fields),
            Freshening.updated(fields, with: fields)
        )
        _ = fields["Content-Range"].flatMap(ContentRange.init(parsing:))
        _ = fields["Content-Disposition"].flatMap(ContentDisposition.init(parsing:))
    }

    private static func date(_ input: [UInt8]) throws {
        if let seconds = HTTPDate.parse(input.text) {
            try hold(HTTPDate.parse(HTTPDate.format(seconds)) == seconds, "\(seconds) reads back as another date")
        }
        let (number, _) = input.numberAndRest
        let text = HTTPDate.format(number)
        try hold(HTTPDate.parse(text).map { HTTPDate.format($0) } == text, "\(text) of \(number)")
        _ = TimeSpan.ago(number, now: .max)
        _ = TimeSpan.ago(.min, now: number)
    }

    private static func contentDisposition(_ input: [UInt8]) throws {
        guard let name = ContentDisposition(parsing: input.text)?.fileName else { return }
        try hold(
            !name.isEmpty && name != "." && name != ".." && !name.utf8.contains { $0 == 0x2F || $0 == 0 },
            "a file of name \(name.debugDescription)")
    }

    /// A PROXY header; Forwarded and the X-Forwarded- fields, one in each line.
    private static func forwarded(_ input: [UInt8]) throws {
        input.withUnsafeBytes { _ = ProxyHeader.isBegun(by: $0) }
        if case .complete(_, let consumed) = input.withUnsafeBytes({ ProxyHeader.parse($0) }) {
            try hold(consumed <= input.count && consumed <= 16 + 4096, "\(consumed) bytes of \(input.count)")
            let cut = input[..<(consumed - 1)].withUnsafeBytes { ProxyHeader.parse($0) }
            try hold(cut == .incomplete, "a header without its last byte is \(cut)")
        }
        let names = ["Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port"]
        let fields = zip(names, input.lines).map { "\($0): \($1)\r\n" }.joined()
        guard
            case .complete(let head, _) = Array("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n".utf8)
                .withUnsafeBytes({ RequestParser.parse($0) }),
            let trusted = try? TrustedAddresses(["10.0.0.0/8", "::/0"]),
            let forwarded = try? ForwardedRequest(head, trusted: trusted), let client = forwarded.client
        else { return }
        try hold(IPEndpoint(client.description) == client, "\(client) reads back as another")
    }

    private static func otherFields(_ input: [UInt8]) throws {
        let lines = input.lines
        _ = Via(pseudonym: "reelcache").isNamed(in: lines[0])
        for line in lines {
            _ = RetryAfter.seconds(line, now: .min)
            if let size = ByteSize(line) {
                try hold(size.bytes >= 0, "a size below 0")
                _ = size.description
            }
            if let span = TimeSpan(line) { try hold(span.seconds >= 0, "a time below 0") }
        }
        let (number, _) = input.numberAndRest
        _ = (ByteSize(bytes: number).description, TimeSpan(seconds: number).description)
    }
}
