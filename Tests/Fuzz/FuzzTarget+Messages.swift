import HTTPModel

@testable import Upstream

extension FuzzTarget {
    static let messages = [
        FuzzTarget(
            name: "request-head",
            seeds: [
                "GET /https/example.org/film.mp4?x=1 HTTP/1.1\r\nHost: 127.0.0.1:7335\r\nRange: bytes=0-\r\nIf-None-Match: \"a\", W/\"b\"\r\n\r\n",
                "GET http://example.org/ HTTP/1.0\r\n\r\n",
                "POST /tv/a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
                "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                "OPTIONS * HTTP/1.1\r\nHost: [::1]\r\nMax-Forwards: 1\r\n\r\n",
            ],
            run: requestHead),
        FuzzTarget(
            name: "request-body",
            seeds: [
                "5\r\nhello\r\n0\r\n\r\n", "A;name=\"value\"\r\n0123456789\r\n000\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n",
                "fffffffffffffff\r\n", "1 ;x\r\na\r\n0 \r\n\r\n",
            ],
            run: requestBody),
        FuzzTarget(
            name: "response-head",
            seeds: [
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n",
                "HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-9/100\r\nX: a\r\n b\r\n\r\n",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 1, 1\r\nAge: 1\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close, x\r\nVary: *\r\n\r\n",
            ],
            run: responseHead),
    ]

    private static func requestHead(_ input: [UInt8]) throws {
        let whole = input.withUnsafeBytes { RequestParser.parse($0) }
        // The same however the bytes were split on their way here.
        for count in Set([input.count / 3, input.count / 2, max(0, input.count - 1)]) {
            let part = input[..<count].withUnsafeBytes { RequestParser.parse($0) }
            switch (part, whole) {
            case (.incomplete, _): break
            case (.invalid(let early), .invalid(let late)):
                try hold(early == late, "\(early) became \(late) after \(count) bytes")
            case (.complete(let early, let consumed), .complete(let late, let consumedLate)):
                try hold(consumed == consumedLate && early.target == late.target, "another head after \(count) bytes")
            default: throw Violation(description: "\(part) became \(whole) after \(count) bytes")
            }
        }
        guard case .complete(let head, let consumed) = whole else { return }
        try hold(consumed <= input.count, "more was consumed than there is")
        guard
            case .complete(let again, consumed) = input.withUnsafeBytes({ RequestParser.parse($0, former: head.rest) }),
            again.rest === head.rest, again.target == head.target, again.body == head.body
        else { throw Violation(description: "another head after itself") }
        let lines = RequestLines()
        for _ in 0..<2 {
            guard
                case .complete(let known, consumed) = input.withUnsafeBytes({ RequestParser.parse($0, lines: lines) }),
                known.target == head.target, known.method == head.method, known.body == head.body,
                known.fields == head.fields
            else { throw Violation(description: "another head after its own line") }
        }
        try hold(head.target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a target that is not ASCII: \(head.target)")
        for line in head.fields.lines {
            try hold(!line.name.isEmpty && line.name.utf8.allSatisfy(ASCII.isToken), "a field's name: \(line.name)")
            try hold(
                !line.value.utf8.contains { $0 == 0 || $0 == 0x0A || $0 == 0x0D }, "a field's value breaks its line")
        }
        _ = (head.keepsAlive, head.value(of: "range"), head.combined("if-none-match"))
        let stored = RepresentationValidators(etag: EntityTag(parsing: "\"a\""), lastModified: 784_111_777)
        _ = Conditional.evaluate(head, against: stored)
        _ = Conditional.rangeApplies(head, against: stored, isDateStrong: true)
        var forwarded = head.fields
        forwarded.removeHopByHop()
        forwarded.removeMalformed()
    }

    /// Chunks, at once and byte by byte.
    private static func requestBody(_ input: [UInt8]) throws {
        let whole = decode(input, step: max(1, input.count)), bytewise = decode(input, step: 1)
        try hold(
            whole.fault == bytewise.fault,
            "\(String(describing: whole.fault)) at once, \(String(describing: bytewise.fault)) byte by byte")
        try hold(whole.content == bytewise.content && whole.consumed == bytewise.consumed, "another body byte by byte")
        try hold(whole.content.count <= input.count, "more content than there was")
    }

    private static func decode(_ input: [UInt8], step: Int) -> (content: [UInt8], consumed: Int?, fault: RequestFault?)
    {
        var decoder = BodyDecoder(.chunked), content: [UInt8] = [], place = 0
        while place <= input.count {
            let end = min(input.count, place + step)
            let taken: (used: Int, ended: Bool, fault: RequestFault?) = input[place..<end].withUnsafeBytes { bytes in
                var used = 0
                while true {
                    do throws(RequestFault) {
                        switch try decoder.next(in: UnsafeRawBufferPointer(rebasing: bytes[used...])) {
                        case .content(let range):
                            content += bytes[(used + range.lowerBound)..<(used + range.upperBound)]
                            used += range.upperBound
                        case .incomplete: return (bytes.count, false, nil)
                        case .end(let consumed): return (used + consumed, true, nil)
                        }
                    } catch { return (used, true, error) }
                }
            }
            if taken.ended { return (content, taken.fault == nil ? place + taken.used : nil, taken.fault) }
            guard end < input.count else { return (content, nil, nil) }
            place = end
        }
        return (content, nil, nil)
    }

    private static func responseHead(_ input: [UInt8]) throws {
        var collector = Hop.HeadCollector()
        for line in input.split(separator: 0x0A, omittingEmptySubsequences: false) {
            let outcome = (Array(line) + [0x0A]).withUnsafeBytes { collector.take($0) }
            guard case .complete(let status, let fields) = outcome else { continue }
            try hold((200...999).contains(status), "status \(status)")
            let length = (try? fields.declaredLength()) ?? nil
            try hold(
                length.map { (0...ByteNumber.greatest).contains($0) } ?? true,
                "a length of \(String(describing: length))")
            var forwarded = fields
            forwarded.removeHopByHop()
            forwarded.removeMalformed()
            try useHead(forwarded, status: status)
        }
    }
}
