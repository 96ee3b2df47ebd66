import Testing

@testable import HTTPModel

/// What is remembered of request lines: it spares work, and changes no outcome.
struct RequestLinesTests {
    private final class Found {}
    private let lines = RequestLines()

    @discardableResult
    private func parse(_ text: String, former: RequestHead.Rest? = nil) throws -> RequestHead {
        guard case .complete(let head, _) = SampleRequest.parse(text.utf8, former: former, lines: lines) else {
            throw SampleRequest.NotARequest(text: text)
        }
        return head
    }

    @Test(arguments: SampleRequest.valid) func knownLineChangesNoOutcome(sample: String) throws {
        let former = try parse(sample).rest
        try parse(sample, former: former)
        let others = [
            sample.replacing("GET", with: "HEAD"), sample.replacing("GET", with: "get"),
            sample.replacing(" /", with: " /x"), sample.replacing(" /", with: " http://a/"),
            sample.replacing("a", with: "b"), sample.replacing(" /", with: "\t/"),
            sample.replacing(" HTTP", with: "  HTTP"), sample.replacing(" HTTP", with: "\0 HTTP"),
            sample.replacing("HTTP/1", with: "HTTP/3"), sample.replacing("1.1", with: "1.0"),
            sample.replacing("Host: ", with: "Host: b\r\nHost: "), sample.replacing("Host:", with: "Most:"),
            sample.replacing("\r", with: ""), sample + sample,
        ]
        let parts = (0..<sample.utf8.count).map { Array(sample.utf8.prefix($0)) }
        for other in (SampleRequest.valid + others).map({ Array($0.utf8) }) + parts {
            for rest in [former, nil] {
                let known = SampleRequest.parse(other, former: rest, lines: lines)
                #expect(summary(known) == summary(SampleRequest.parse(other)))
            }
        }
    }

    @Test func whatWasFoundForALineIsThereWhenItComesAgain() throws {
        let found = Found()
        try parse(SampleRequest.browser)
        lines.last?.found = found
        try parse("GET /another HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(lines.last?.found == nil)
        try parse(SampleRequest.browser.replacing("127.0.0.1", with: "localhost"))
        #expect(lines.last?.found === found)
        // Another method is another line.
        try parse(SampleRequest.browser.replacing("GET", with: "HEAD"))
        #expect(lines.last?.found == nil)
    }

    @Test func sameHeadIsShared() throws {
        let first = try parse(SampleRequest.browser)
        let second = try parse(SampleRequest.browser, former: first.rest)
        #expect(try parse(SampleRequest.browser, former: first.rest) === second)
        let seek = try parse(SampleRequest.browser.replacing("bytes=0-", with: "bytes=7-"), former: first.rest)
        #expect(seek.value(of: "Range") == "bytes=7-" && second.value(of: "Range") == "bytes=0-")
    }

    @Test func lineThatIsUsedStaysWhateverOthersSend() throws {
        try parse(SampleRequest.browser)
        let line = lines.last
        for number in 0..<10_000 {
            #expect(try parse("GET /of/\(number) HTTP/1.1\r\nHost: a\r\n\r\n").target == "/of/\(number)")
            try parse(SampleRequest.browser)
            #expect(lines.last === line)
        }
    }

    /// Heads go before lines, with what was found for these.
    @Test func linesOutlastTheirHeads() throws {
        let padding = String(repeating: "x", count: 1900)
        func text(_ number: Int, _ client: Int) -> String {
            "GET /\(number) HTTP/1.1\r\nHost: a\r\nX: \(client)\(padding)\r\n\r\n"
        }
        for client in 0..<3 {
            let rest = try SampleRequest.head(text(0, client)).rest
            for number in 0..<1000 {
                try parse(text(number, client), former: rest)
                if client == 0 { lines.last?.found = Found() }
            }
        }
        var known = 0
        for number in 0..<1000 {
            try parse(text(number, 9))
            if lines.last?.found != nil { known += 1 }
        }
        // A few share a pair of places with two others.
        #expect(known > 800, "\(known)")
    }

    /// Neither many long lines, nor one with ever other fields, take more than their share of memory.
    @Test func whatIsRememberedIsBounded() throws {
        let long = String(repeating: "x", count: 900)
        for number in 0..<3000 { try parse("GET /\(number)\(long) HTTP/1.1\r\nHost: a\r\n\r\n") }
        #expect(lines.weight <= RequestLines.capacity && lines.weight > RequestLines.capacity / 2)
        for number in 0..<3000 {
            let rest = try SampleRequest.head("GET / HTTP/1.1\r\nHost: \(number)\r\nX: \(long)\r\n\r\n").rest
            try parse("GET /\(number) HTTP/1.1\r\nHost: \(number)\r\nX: \(long)\r\n\r\n", former: rest)
            try parse("GET /\(number) HTTP/1.1\r\nHost: \(number)\r\nX: \(long)\r\n\r\n", former: rest)
            #expect(lines.weight <= RequestLines.capacity)
        }
        // What is longer is not remembered at all.
        try parse("GET /\(String(repeating: long, count: 5)) HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(lines.last == nil)
    }
}
