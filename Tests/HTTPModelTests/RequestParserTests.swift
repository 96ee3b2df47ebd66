import HTTPModel
import TestSupport
import Testing

@Suite struct RequestParserTests {
    @Test func browserRequestIsTakenApart() throws {
        let head = try SampleRequest.head(SampleRequest.browser)
        #expect(head.method == .get)
        #expect(head.version == .http11)
        #expect(head.target == "/https/media.example/a%20b.mp4?x=1")
        #expect(head.fields.lines.map(\.name) == ["Host", "Connection", "User-Agent", "Accept", "Range"])
        #expect(head.value(of: "range") == "bytes=0-")
        #expect(head.value(of: "host") == "127.0.0.1:7335")
    }

    @Test(arguments: [
        ("GET", RequestMethod.get), ("HEAD", .head), ("OPTIONS", .options), ("POST", .other("POST")),
        ("get", .other("get")),
        ("M-SEARCH", .other("M-SEARCH")),
    ])
    func methodsAreToldApartByCase(text: String, method: RequestMethod) throws {
        let head = try SampleRequest.head("\(text) / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(head.method == method)
        #expect(head.method.name == text)
    }

    @Test func pipelinedRequestsAreConsumedOneByOne() throws {
        var rest = Array(SampleRequest.valid.joined().utf8)
        for sample in SampleRequest.valid {
            guard case .complete(_, let consumed) = SampleRequest.parse(rest) else {
                Issue.record("not complete: \(sample)")
                return
            }
            #expect(consumed == sample.utf8.count)
            rest.removeFirst(consumed)
        }
        #expect(rest.isEmpty)
    }

    @Test func whatEqualsTheFormerRequestIsNotParsedAgain() throws {
        let former = try SampleRequest.head(SampleRequest.browser).rest
        let seek = SampleRequest.browser.replacing("/https/media.example/a%20b.mp4?x=1", with: "/b")
        guard case .complete(let head, _) = SampleRequest.parse(seek.utf8, former: former) else {
            Issue.record("not complete")
            return
        }
        #expect(head.rest === former && head.target == "/b" && head.value(of: "range") == "bytes=0-")
    }

    /// A player seeks: nothing but `Range` differs, which is read as it is sent.
    @Test(arguments: ["bytes=5-9", "bytes=123456789-", "b", "bytes=0-0,5-9", "BYTES=-7"])
    func headThatDiffersInItsRangeSharesTheRest(range: String) throws {
        let former = try SampleRequest.head(SampleRequest.browser).rest
        let seek = SampleRequest.browser.replacing("bytes=0-", with: range)
        let result = SampleRequest.parse((seek + seek).utf8, former: former)
        guard case .complete(let head, let consumed) = result else {
            Issue.record("not complete")
            return
        }
        #expect(head.rest === former && consumed == seek.utf8.count)
        #expect(head.value(of: "Range") == range && head.combined("range") == range && head.fields["Range"] == range)
        #expect(head.value(of: "Host") == "127.0.0.1:7335")
        #expect(summary(result) == summary(SampleRequest.parse((seek + seek).utf8)))
    }

    /// What is not one range of plain characters is read anew.
    @Test(arguments: [
        "Range: a b", "Range:", "Range: \u{E9}", "Range: a\r\nRange: b", "Range : a", "Range: a\r\n b", "Rango: a",
        "X: a",
        "Range: \u{7F}", "Range: a ", "Range:  a", "range: a",
    ])
    func otherRangeIsReadAsItStands(line: String) throws {
        for former in ["Range: bytes=0-", line] {
            let samples = [former, line].map { SampleRequest.browser.replacing("Range: bytes=0-", with: $0) }
            guard case .complete(let head, _) = SampleRequest.parse(samples[0].utf8) else { continue }
            for end in 0...samples[1].utf8.count {
                let part = Array(samples[1].utf8.prefix(end))
                #expect(summary(SampleRequest.parse(part, former: head.rest)) == summary(SampleRequest.parse(part)))
            }
        }
    }

    /// Nothing else changes the outcome: not a method for which the same fields are faulty, nor a part of a head, nor
    /// one that goes on where the former ended.
    @Test(arguments: SampleRequest.valid) func theFormerRequestChangesNoOutcome(sample: String) throws {
        let former = try SampleRequest.head(sample).rest
        let others = [
            sample.replacing("POST", with: "GET"), sample.replacing("a", with: "b"),
            sample.replacing("0-", with: "7-8"),
            sample.replacing("0-", with: " "), sample + sample,
        ]
        let parts = (0..<sample.utf8.count).map { Array(sample.utf8.prefix($0)) }
        for other in (SampleRequest.valid + others).map({ Array($0.utf8) }) + parts {
            #expect(summary(SampleRequest.parse(other, former: former)) == summary(SampleRequest.parse(other)))
        }
    }

    @Test(arguments: [("HTTP/1.0", HTTPVersion.http10), ("HTTP/1.1", .http11), ("HTTP/1.2", .http11)])
    func minorVersionsAboveOneAreServedAsOne(text: String, version: HTTPVersion) throws {
        #expect(try SampleRequest.head("GET / \(text)\r\nHost: a\r\n\r\n").version == version)
    }

    // MARK: - Faults

    static let faults: [(Int, String)] = [
        // Request line
        (400, "GET /\r\n"), (400, "GET /\n"), (400, "GET \r\n"), (400, "GET  / HTTP/1.1\r\n"),
        (400, " GET / HTTP/1.1\r\n"),
        (400, "GET / a HTTP/1.1\r\n"), (400, "GET /  HTTP/1.1\r\n"), (400, "GET / HTTP/1.1 \r\n"),
        (400, "GET / http/1.1\r\n"),
        (400, "GET / HTTP/1.10\r\n"), (400, "GET / HTTP/0.9\r\n"), (400, "GET / HTTP/11\r\n"), (400, "GET / HTTP/1.x"),
        (400, "GET /\u{0} HTTP/1.1"), (400, "GET /\t HTTP/1.1"), (400, "GET /\u{7F} HTTP/1.1"), (400, "G\u{0}"),
        (400, "GET\t/"),
        (400, "\u{16}\u{3}\u{1}"), (400, "GET / HTTP/1.1\rHost"), (400, "\r\r"), (400, "(GET) /"),
        (501, String(repeating: "A", count: 33)),
        (505, "GET / HTTP/2.0\r\n"), (505, "GET / HTTP/3"), (505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (400, "\r\n\r\n\r\n\r\n\r\n"),
        // Field lines
        (400, "GET / HTTP/1.1\r\n Host: a\r\n"), (400, "GET / HTTP/1.1\r\nHost: a\r\n b\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\n\tb\r\n"),
        (400, "GET / HTTP/1.1\r\nHost : a\r\n"), (400, "GET / HTTP/1.1\r\nHost\t: a\r\n"),
        (400, "GET / HTTP/1.1\r\n: a\r\n"),
        (400, "GET / HTTP/1.1\r\nHost\r\n"), (400, "GET / HTTP/1.1\r\nHo(st: a\r\n"),
        (400, "GET / HTTP/1.1\r\nH\u{E9}: a\r\n"),
        (400, "GET / HTTP/1.1\r\nX: a\u{0}b\r\n"), (400, "GET / HTTP/1.1\r\nX: a\u{1}b\r\n"),
        (400, "GET / HTTP/1.1\r\nX: a\u{7F}\r\n"),
        (400, "GET / HTTP/1.1\r\nX: a\rb\r\n"), (400, "GET / HTTP/1.1\r\nHost: a\r\n\rGET"),
        // Host
        (400, "GET / HTTP/1.1\r\n\r\n"), (400, "GET / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n"),
        (400, "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: evil.com#.localhost\r\n"), (400, "GET / HTTP/1.1\r\nHost: a/.localhost\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a?.localhost\r\n"), (400, "GET / HTTP/1.1\r\nHost: a\\.localhost\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a .localhost\r\n"), (400, "GET / HTTP/1.1\r\nHost: a@localhost\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: localhost:abc\r\n"), (400, "GET / HTTP/1.1\r\nHost: localhost:1:2\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: [::1\r\n"), (400, "GET / HTTP/1.1\r\nHost: [::1]a\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: [::1/]\r\n"),
        // Bodies
        (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
        (400, "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
        (400, "OPTIONS / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
        (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
        (400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n"),
        (400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, "POST / HTTP/1.1\r\nContent-Length:\r\n"), (400, "POST / HTTP/1.1\r\nContent-Length: -1\r\n"),
        (400, "POST / HTTP/1.1\r\nContent-Length: +1\r\n"), (400, "POST / HTTP/1.1\r\nContent-Length: 1 2\r\n"),
        (400, "POST / HTTP/1.1\r\nContent-Length: 0x1\r\n"), (400, "POST / HTTP/1.1\r\nContent-Length: 1,2\r\n"),
        (400, "POST / HTTP/1.1\r\nContent-Length: 1,\r\n"),
        (400, "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n"),
        (400, "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n"),
        (400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n"),
        // Transfer codings
        (400, "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n"), (400, "POST / HTTP/1.1\r\nTransfer-Encoding: ,chunked\r\n"),
        (400, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked,\r\n"),
        (400, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n"),
        (400, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        (400, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n"),
        (400, "POST / HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n"),
        (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"),
        (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
        (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
        (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"),
        (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n"),
        (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n"),
        // Expectations
        (417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n"),
        (417, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue, x\r\n\r\n"),
        (417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue=1\r\n\r\n"),
    ]

    @Test(arguments: faults)
    func faultIsFoundAndNamed(status: Int, text: String) throws {
        let fault = try #require(SampleRequest.fault(text))
        #expect(fault.status == status, "\(fault.reason)")
        #expect(fault.reason.utf8.allSatisfy { 0x20...0x7E ~= $0 }, "one line of ASCII")
    }

    @Test func reasonsTellWhatToDo() {
        #expect(SampleRequest.fault("\u{16}\u{3}\u{1}")?.reason.contains("TLS") == true)
        #expect(SampleRequest.fault("GET /a b HTTP/1.1")?.reason.contains("%20") == true)
        #expect(SampleRequest.fault("GET / HTTP/1.1\r\nHost: a\r\n b")?.reason.contains("one line") == true)
        #expect(SampleRequest.fault("GET / HTTP/1.1\r\nHost : a")?.reason.contains("colon") == true)
        for method in ["GET", "HEAD", "OPTIONS"] {
            let fault = SampleRequest.fault("\(method) / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
            #expect(fault?.reason == "a \(method) request must not have a body")
        }
    }

    @Test(arguments: ["0", "00", "0, 0"])
    func emptyBodyOfGetIsNoBody(length: String) throws {
        #expect(try SampleRequest.get("Content-Length: \(length)").method == .get)
    }

    @Test(arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func otherMethodWithBodyIsCompleteAtItsHead(field: String) throws {
        let head = "POST / HTTP/1.1\r\nHost: a\r\n\(field)\r\n\r\n"
        guard case .complete(_, let consumed) = SampleRequest.parse((head + "hello").utf8) else {
            Issue.record("not complete")
            return
        }
        #expect(consumed == head.utf8.count)
    }

    @Test(
        arguments: [
            ("HTTP/1.1\r\nHost: a\r\n", .empty, false), ("HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n", .empty, false),
            ("HTTP/1.1\r\nHost: a\r\nContent-Length: 12, 012\r\n", .length(12), false),
            ("HTTP/1.0\r\nContent-Length: 5\r\n", .length(5), false),
            ("HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \t Chunked \r\n", .chunked, false),
            ("HTTP/1.1\r\nHost: a\r\ncontent-length: 5\r\nexpect: 100-Continue\r\n", .length(5), true),
            ("HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n", .chunked, true),
            ("HTTP/1.1\r\nHost: a\r\nExpect: , 100-continue,,\r\nContent-Length: 5\r\n", .length(5), true),
            ("HTTP/1.1\r\nHost: a\r\nExpect:\r\nContent-Length: 5\r\n", .length(5), false),
            // RFC 9110 §10.1.1: nothing to wait for, and an expectation that HTTP/1.0 does not have.
            ("HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n", .empty, false),
            ("HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n", .length(5), false),
            ("HTTP/1.0\r\nExpect: x\r\n", .empty, false),
        ] as [(String, BodyFraming, Bool)])
    func headSaysWhatFollowsIt(rest: String, body: BodyFraming, expectsContinue: Bool) throws {
        let head = try SampleRequest.head("POST / \(rest)\r\n")
        #expect(head.body == body)
        #expect(head.expectsContinue == expectsContinue)
    }

    @Test func everyOctetIsAcceptedOrRefusedAsTheGrammarSays() {
        for byte in UInt8.min ... .max {
            let name = SampleRequest.parse(Array("GET / HTTP/1.0\r\nX".utf8) + [byte] + Array("Y: a\r\n\r\n".utf8))
            let token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:".utf8.contains(
                byte)
            #expect(summary(name).hasPrefix("complete") == token, "in a name: \(byte)")
            let value = SampleRequest.parse(Array("GET / HTTP/1.0\r\nX: a".utf8) + [byte] + Array("b\r\n\r\n".utf8))
            let isContent = byte == 9 || byte >= 32 && byte != 127
            // A line feed ends the line: then "b" is a name without a colon.
            #expect(summary(value).hasPrefix("complete") == isContent, "in a value: \(byte)")
            // Long values are read a word at a time: the same must hold at each place in a word.
            for place in 0..<16 {
                var long = Array(repeating: UInt8(ascii: "a"), count: 16)
                long[place] = byte
                let result = SampleRequest.parse(Array("GET / HTTP/1.0\r\nX: ".utf8) + long + Array("b\r\n\r\n".utf8))
                #expect(summary(result).hasPrefix("complete") == isContent, "in a value, at \(place): \(byte)")
            }
            let target = SampleRequest.parse(Array("GET /a".utf8) + [byte] + Array("b HTTP/1.0\r\n\r\n".utf8))
            #expect(summary(target).hasPrefix("complete") == (byte > 32 && byte != 127), "in a target: \(byte)")
        }
    }

    // MARK: - Limits

    @Test func targetOfTheGreatestLengthPassesAndOneByteMoreDoesNot() {
        let limits = RequestLimits(maxTargetBytes: 10)
        let target = "/" + String(repeating: "a", count: 9)
        #expect(
            summary(SampleRequest.parse("GET \(target) HTTP/1.0\r\n\r\n".utf8, limits: limits)).hasPrefix("complete"))
        #expect(summary(SampleRequest.parse("GET \(target)".utf8, limits: limits)) == "incomplete")
        #expect(SampleRequest.fault("GET \(target)a", limits: limits)?.status == 414)
    }

    /// Of the control interface, in a parameter of which such a target has to have room.
    @Test func longTargetOfItsPrefixPassesUpToALimitOfItsOwn() {
        var limits = RequestLimits(maxTargetBytes: 10)
        limits.maxLongTargetBytes = 20
        let target = "/api/" + String(repeating: "a", count: 15)
        #expect(
            summary(SampleRequest.parse("GET \(target) HTTP/1.0\r\n\r\n".utf8, limits: limits)).hasPrefix("complete"))
        #expect(SampleRequest.fault("GET \(target)a", limits: limits)?.status == 414)
        for other in ["/apis/", "/APIs/", "//api/", "/http/api/"] {
            #expect(SampleRequest.fault("GET \(other + target)", limits: limits)?.status == 414)
        }
        for start in 0...target.count {
            #expect(summary(SampleRequest.parse("GET \(target.prefix(start))".utf8, limits: limits)) == "incomplete")
        }
    }

    @Test func headOfTheGreatestLengthPassesAndOneByteMoreDoesNot() {
        let text = SampleRequest.browser
        let count = text.utf8.count
        let exact = RequestLimits(maxHeadBytes: count)
        #expect(summary(SampleRequest.parse(text.utf8, limits: exact)).hasPrefix("complete"))
        #expect(summary(SampleRequest.parse((text + text).utf8, limits: exact)).hasPrefix("complete"))
        #expect(summary(SampleRequest.parse(text.utf8.dropLast(), limits: exact)) == "incomplete")
        let short = RequestLimits(maxHeadBytes: count - 1)
        #expect(SampleRequest.fault(text, limits: short)?.status == 431)
        let full = summary(SampleRequest.parse(text.utf8.dropLast(), limits: short))
        #expect(full.hasPrefix("invalid 431"), "no byte more would fit")
    }

    @Test func headThatNeverEndsIsRefusedAtTheLimit() {
        let endless = "GET / HTTP/1.1\r\nX: " + String(repeating: "a", count: 80000)
        #expect(SampleRequest.fault(endless)?.status == 431)
    }

    @Test func fieldsUpToTheLimitPassAndOneMoreDoesNot() {
        let limits = RequestLimits(maxFields: 3)
        let start = "GET / HTTP/1.0\r\n" + String(repeating: "X: a\r\n", count: 3)
        #expect(summary(SampleRequest.parse((start + "\r\n").utf8, limits: limits)).hasPrefix("complete"))
        #expect(summary(SampleRequest.parse(start.utf8, limits: limits)) == "incomplete")
        #expect(SampleRequest.fault(start + "X", limits: limits)?.status == 431)
    }

    // MARK: - Properties

    @Test(arguments: SampleRequest.valid)
    func validRequestIsIncompleteUpToItsLastByte(text: String) {
        let bytes = Array(text.utf8)
        for count in bytes.indices {
            #expect(summary(SampleRequest.parse(bytes[..<count])) == "incomplete", "after \(count) bytes")
        }
        let whole = summary(SampleRequest.parse(bytes))
        #expect(whole.hasPrefix("complete \(bytes.count) "))
        #expect(summary(SampleRequest.parse(bytes + [0, 1, 2])) == whole)
    }

    @Test(arguments: faults.map(\.1))
    func faultIsTheSameWhereverItsBytesWereSplit(text: String) {
        expectOneResult(Array(text.utf8))
    }

    @Test func mutatedRequestsNeverTrapAndNeverChangeTheirMind() {
        var random = SplitMix64.forTest("mutatedRequests")
        for _ in 0..<400 {
            var bytes = Array(SampleRequest.valid.randomElement(using: &random)!.utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) { mutate(&bytes, &random) }
            expectOneResult(bytes)
        }
    }

    @Test func arbitraryBytesNeverTrap() {
        var random = SplitMix64.forTest("arbitraryBytes")
        for _ in 0..<2000 {
            let count = Int.random(in: 0...60, using: &random)
            let limits = RequestLimits(
                maxHeadBytes: .random(in: 0...50, using: &random), maxTargetBytes: .random(in: 0...10, using: &random),
                maxFields: .random(in: 0...2, using: &random))
            _ = SampleRequest.parse((0..<count).map { _ in awkwardByte(&random) }, limits: limits)
        }
    }

    /// Each longer prefix gives the result that the first decided one gave.
    private func expectOneResult(_ bytes: [UInt8]) {
        var decided: String?
        for count in 0...bytes.count {
            let result = summary(SampleRequest.parse(bytes[..<count]))
            if let decided { #expect(result == decided, "after \(count) bytes of \(bytes)") }
            if result != "incomplete" { decided = decided ?? result }
        }
    }

    private func mutate(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[place] = awkwardByte(&random)
        case 1: bytes.insert(awkwardByte(&random), at: place)
        case 2 where bytes.count > 1: bytes.remove(at: place)
        default: bytes.insert(contentsOf: bytes[place..<min(place + 20, bytes.count)], at: place)
        }
    }

    private func awkwardByte(_ random: inout SplitMix64) -> UInt8 {
        let awkward = Array("\r\n\t :,/0aAG\u{0}\u{7F}".utf8) + [0x80, 0xFF]
        return Bool.random(using: &random)
            ? awkward.randomElement(using: &random)! : .random(in: .min ... .max, using: &random)
    }
}
