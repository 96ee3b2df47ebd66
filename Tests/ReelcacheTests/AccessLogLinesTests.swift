import Activity
import CachePolicy
import EventIO
import Foundation
import Glibc
import HTTPModel
import TestSupport
import Testing

@testable import HTTPTransport
@testable import Reelcache

@Suite struct AccessLogLinesTests {
    private func record(time: Int64 = 1_700_000_000_042, url: String = "https://a.example/f.mp4") -> AccessRecord {
        AccessRecord(
            time: time, client: "[::1]:5060", method: "GET", url: url, range: "bytes=0-", version: .http11, status: 206,
            bytes: 10, cacheBytes: 7, originBytes: 3, firstByteMicroseconds: 50, microseconds: 12_300, isComplete: true,
            userAgent: nil, referrer: nil, cacheStatus: .hit(ttl: -5))
    }

    private func text(_ records: [AccessRecord], _ format: AccessLogFormat) -> String {
        var lines = AccessLog.Lines(format, .standard, (0, 0))
        for record in records { lines.add(record) }
        return String(decoding: lines.bytes, as: UTF8.self)
    }

    @Test func partsOfALineStandInTheirForm() {
        let record = record()
        #expect(
            text([record], .json) == #"{"time":"2023-11-14T22:13:20.042Z","client":"[::1]:5060","method":"GET","#
                + #""url":"https://a.example/f.mp4","range":"bytes=0-","status":206,"bytes":10,"cache_bytes":7,"#
                + #""origin_bytes":3,"first_byte_ms":0.05,"ms":12.3,"complete":true,"#
                + #""cache_status":"reelcache; hit; ttl=-5"}"# + "\n")
        #expect(
            text([record], .combined)
                == #"::1 - - [14/Nov/2023:22:13:20 +0000] "GET https://a.example/f.mp4 HTTP/1.1" "#
                + #"206 10 "-" "-" "reelcache; hit; ttl=-5" 7 3 0.05 12.3"# + "\n")
    }

    /// As when a disk is full, or the reader of a pipe is slow while the log is reopened.
    @Test func lineAfterOneThatWasCutStandsAlone() throws {
        let directory = try TemporaryDirectory(), path = directory.file("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        func read() -> String {
            var bytes: [UInt8] = [], buffer = [UInt8](repeating: 0, count: 65536)
            while case let count = Glibc.read(reader, &buffer, buffer.count), count > 0 { bytes += buffer[..<count] }
            return String(decoding: bytes, as: UTF8.self)
        }
        let log = try AccessLog(Current(ProxyPolicy()), .json, metrics: ProxyMetrics())
        try log.open(path)
        // More than a pipe holds.
        for _ in 1...2000 { log.record(record()) }
        try log.reopen()
        let cut = read()
        #expect(!cut.isEmpty && !cut.hasSuffix("\n"))
        log.record(record())
        log.close()
        #expect(read() == "\n" + text([record()], .json))
    }

    /// Whoever embeds the library need not ignore the signal.
    @Test func pipeThatNobodyReadsEndsNoProgram() async {
        await #expect(processExitsWith: .success) {
            signal(SIGPIPE, SIG_DFL)
            let directory = try TemporaryDirectory(), path = directory.file("pipe"), metrics = ProxyMetrics()
            #expect(mkfifo(path, 0o600) == 0)
            let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            let log = try AccessLog(Current(ProxyPolicy()), .json, metrics: metrics)
            try log.open(path)
            close(reader)
            log.record(AccessLogLinesTests().record())
            log.close()
            #expect(metrics.errors.values == ["access-log": 1])
        }
    }

    @Test(arguments: [0, 1, 10, 100, 999, 1000, 1001, 1010, 1100, 59_000, 1_234_567])
    func millisecondsAreThoseOfADecimalNumber(microseconds: UInt64) throws {
        var record = record()
        record.microseconds = microseconds
        #expect(text([record], .json).contains("\"ms\":\(Double(microseconds) / 1000),"))
    }

    @Test func eachLineHasTheTimeOfItsOwnSecond() {
        let times: [Int64] = [-1, 0, 999, 1000, 59_999, 60_000, 0]
        let lines = text(times.map { record(time: $0) }, .json).split(separator: "\n")
        #expect(
            lines.map { $0.dropFirst(9).prefix(24) } == [
                "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.999Z",
                "1970-01-01T00:00:01.000Z", "1970-01-01T00:00:59.999Z", "1970-01-01T00:01:00.000Z",
                "1970-01-01T00:00:00.000Z",
            ])
    }

    /// A whole line has no secret that its texts, masked one by one, have left; the same text is the same each time.
    @Test(arguments: AccessLogFormat.allCases) func noTextLeavesASecret(format: AccessLogFormat) throws {
        var random = SplitMix64.forTest("secretsInLines")
        let pieces = [
            "http://", "u:p@", "h", "/", "?", "&", ";", "#", "token=", "?token=", "=", "abc", "%3F", "%26", "%2526",
            "%25", "%",
            "\\", "\"", " ", "\u{7F}", "\u{2028}", "ä", ";sid=", ":", ",", "\u{1B}",
        ]
        let mask = URLMask.standard
        var lines = AccessLog.Lines(format, mask, (0, 0)), masked = 0
        for _ in 0..<2000 {
            let text = (0..<Int.random(in: 1...12, using: &random)).map { _ in pieces.randomElement(using: &random)! }
            var record = record(url: text.joined())
            (record.userAgent, record.referrer) = (text.reversed().joined(), text.joined())
            record.cacheStatus?.key = text.joined()
            lines.add(record)
            let first = lines.bytes
            lines.bytes.removeAll()
            lines.add(record)
            #expect(lines.bytes == first)
            let again = mask.masked(first)
            #expect(
                again == first,
                "\(String(decoding: first, as: UTF8.self)) became \(String(decoding: again, as: UTF8.self))")
            lines.bytes.removeAll()
            if String(decoding: first, as: UTF8.self).contains("***") { masked += 1 }
            if format == .json { #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(first)) } }
        }
        #expect((200..<1990).contains(masked))
    }

    /// Unicode calls them equal: U+037E and the semicolon, a letter with its accent and one that is composed.
    @Test(arguments: [("a/\u{37E}token=b", "a/;token=b"), ("a/\u{E9}?", "a/e\u{301}?")])
    func equalTextsOfOtherBytesAreWrittenEach(texts: (String, String)) {
        for (first, second) in [texts, (texts.1, texts.0)] {
            let line = text([record(url: first), record(url: second)], .json).split(separator: "\n").last
            #expect(Array(line!.utf8) == Array(text([record(url: second)], .json).utf8.dropLast()))
        }
    }

    /// However many texts there are, few are kept; and each is still written in full.
    @Test func manyTextsAreWrittenToo() {
        let urls = (0..<1500).map { "https://a.example/\($0).mp4?token=\($0)" }
        let lines = text(urls.map { record(url: $0) }, .json).split(separator: "\n")
        #expect(lines.count == 1500)
        for (number, line) in lines.enumerated() {
            #expect(line.contains("\"url\":\"https://a.example/\(number).mp4?token=***\""))
        }
    }
}
