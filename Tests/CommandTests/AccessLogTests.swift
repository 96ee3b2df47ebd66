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
        let end = ContinuousClock.now + .patience
        while !text(path).hasSuffix("\n") {
            guard ContinuousClock.now < end else {
                throw DeadlinePassed(what: "a line in \(path)", instead: text(path))
            }
            sched_yield()
        }
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
}
