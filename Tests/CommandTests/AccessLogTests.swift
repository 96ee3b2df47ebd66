import Foundation
import TestSupport
import Testing

/// `serve --access-log`, and what logrotate does with its file.
@Suite struct AccessLogTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }

    private func waitForLine(in path: String) throws {
        try eventually("a line in \(path)", instead: text(path)) { text(path).hasSuffix("\n") }
    }

    @Test func hangupGoesOnInANewFile() throws {
        let (log, old) = (directory.file("access.log"), directory.file("access.log.1"))
        let proxy = try ProxyProcess(
            cacheDirectory: directory.file("cache"), arguments: ["--access-log", log, "--log-level", "notice"])
        #expect(try proxy.get("/healthz").status == 200)
        try waitForLine(in: log)
        #expect(try FileManager.default.attributesOfItem(atPath: log)[.posixPermissions] as? Int == 0o600)
        try FileManager.default.moveItem(atPath: log, toPath: old)
        proxy.process.signal(SIGHUP)
        try proxy.process.waitForLine(containing: "nothing has changed", on: .stderr)
        #expect(try proxy.get("/nothing").status == 404)
        try waitForLine(in: log)
        #expect(text(old).split(separator: "\n").count == 1 && text(old).contains("/healthz"))
        #expect(text(log).split(separator: "\n").count == 1 && text(log).contains("/nothing"))
    }

    @Test func standardOutputIsALogToo() throws {
        let proxy = try ProxyProcess(cacheDirectory: directory.file("cache"), arguments: ["--access-log", "-"])
        #expect(try proxy.get("/healthz").status == 200)
        let line = try proxy.process.waitForLine(containing: "\"url\":\"/healthz\"")
        #expect(line.hasPrefix("{\"time\":") && line.hasSuffix("}"))
    }

    @Test func fileThatCannotBeWrittenIsNamed() throws {
        let outcome = try ReelcacheCommand.run(
            [
                "serve", "--listen", "127.0.0.1:0", "--cache-dir", directory.file("cache"), "--access-log",
                directory.file("none/access.log"),
            ])
        let line = try #require(outcome.failureLine)
        #expect(
            line.contains("cannot write the access log \(directory.file("none/access.log")): No such file"), "\(line)")
    }

    /// Nobody reads what it writes: that holds up neither players nor the end.
    @Test func stalledReaderOfAPipeHoldsNothingUp() throws {
        let pipe = directory.file("pipe")
        #expect(mkfifo(pipe, 0o600) == 0)
        let reader = open(pipe, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        let proxy = try ProxyProcess(
            cacheDirectory: directory.file("cache"), arguments: ["--access-log", pipe, "--log-level", "notice"])
        let player = try RawClient(port: proxy.port)
        // More than a pipe holds.
        for number in 0..<40 {
            #expect(try player.get("/" + String(repeating: "a", count: 4000) + "\(number)").status == 404)
        }
        proxy.process.signal(SIGHUP)
        try proxy.process.waitForLine(containing: "nothing has changed", on: .stderr)
        #expect(try player.get("/healthz").status == 200)
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func pipeThatNobodyReadsIsNamed() throws {
        let pipe = directory.file("pipe")
        #expect(mkfifo(pipe, 0o600) == 0)
        let outcome = try ReelcacheCommand.run([
            "serve", "--listen", "127.0.0.1:0", "--cache-dir", directory.file("cache"), "--access-log", pipe,
        ])
        let line = try #require(outcome.failureLine)
        #expect(line.contains("cannot write the access log \(pipe): no process reads this pipe"), "\(line)")
    }

    // MARK: Formats

    /// Apache's combined format, and what the cache knows at the end of each line.
    @Test func combinedLinesAreThoseOfWebServers() throws {
        let log = directory.file("access.log")
        let origin = try ScriptedOrigin()
        origin.serve("/film.mp4", Media(seed: 9, size: 100_000))
        let proxy = try ProxyProcess(
            cacheDirectory: directory.file("cache"),
            arguments: ["--access-log", log, "--access-log-format", "combined"])
        let target = ProxyProcess.target(origin.url("/film.mp4?token=abc"))
        let headers = [("User-Agent", "a\"\\\u{9B}31mb\u{202E}c\u{2028}"), ("Referer", "https://a.example/?sig=xyz")]
        #expect(try RawClient.get(port: proxy.port, path: target, headers: headers).status == 200)
        #expect(try RawClient.get(port: proxy.port, path: target, range: "bytes=0-9").status == 206)
        #expect(try proxy.get("/nothing").status == 404)
        #expect(try proxy.process.terminate() == .exited(0))
        // A line is written when its response has ended, by the loop that served it: two may change places.
        let lines = text(log).split(separator: "\n").map(String.init)
        try #require(lines.count == 3)
        func line(of status: Int) throws -> String { try #require(lines.first { $0.contains("\" \(status) ") }) }
        let shape =
            /127\.0\.0\.1 - - \[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000\] "(.*?)" (\d+) (\d+|-) "(.*?)" "(.*)" "(.*?)" (\d+) (\d+) ([\d.]+|-) ([\d.]+)/
        let (miss, part, page) = (
            try #require(line(of: 200).wholeMatch(of: shape)), try #require(line(of: 206).wholeMatch(of: shape)),
            try #require(line(of: 404).wholeMatch(of: shape))
        )
        #expect(miss.1 == "GET \(origin.url("/film.mp4?token=***")) HTTP/1.1" && miss.2 == "200" && miss.3 == "100000")
        #expect(miss.4 == "https://a.example/?sig=***" && miss.5 == #"a\"\\\xc2\x9b31mb\xe2\x80\xaec\xe2\x80\xa8"#)
        #expect(miss.6.contains("fwd=uri-miss") && miss.7 == "0" && miss.8 == "100000")
        #expect(part.2 == "206" && part.3 == "10" && part.4 == "-" && part.5 == "-")
        #expect(part.6.contains("hit") && part.7 == "10" && part.8 == "0")
        #expect(page.1 == "GET /nothing HTTP/1.1" && page.2 == "404" && page.6 == "-")
        for line in lines { #expect(!line.contains("abc") && !line.contains("xyz")) }
    }

    @Test func formatChangesAtHangup() throws {
        let (log, file) = (directory.file("access.log"), directory.file("r.yaml"))
        func write(_ format: String) throws {
            try "access_log: \(log)\naccess_log_format: \(format)\n".write(
                toFile: file, atomically: true, encoding: .utf8)
        }
        try write("json")
        let proxy = try ProxyProcess(
            cacheDirectory: directory.file("cache"), arguments: ["--config", file, "--log-level", "notice"])
        #expect(try proxy.get("/healthz").status == 200)
        try waitForLine(in: log)
        try write("combined")
        proxy.process.signal(SIGHUP)
        try proxy.process.waitForLine(containing: "access_log_format is now combined", on: .stderr)
        #expect(try proxy.get("/nothing").status == 404)
        #expect(try proxy.process.terminate() == .exited(0))
        let lines = text(log).split(separator: "\n")
        #expect(lines.count == 2 && lines.first?.hasPrefix("{") == true)
        #expect(lines.last?.contains("\"GET /nothing HTTP/1.1\" 404") == true)
    }

    @Test func otherFormatsAreRefused() throws {
        let outcome = try ReelcacheCommand.run(["serve", "--access-log-format", "common"])
        #expect(outcome.exit == .exited(2))
        #expect(outcome.stderr.contains("'common' is not a format of the access log; write json or combined"))
    }
}
