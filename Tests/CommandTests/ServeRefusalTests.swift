import Foundation
import TestSupport
import Testing

/// A `reelcache serve` that cannot start says in one line why, and exits: 1 failed, 2 wrong usage.
@Suite struct ServeRefusalTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var cache: String { directory.file("cache") }

    private func serve(_ arguments: [String]) throws -> ChildProcess.Outcome {
        try ReelcacheCommand.run(["serve"] + arguments)
    }

    @Test func aSecondProxyOnTheCacheNamesTheFirst() throws {
        let first = try ProxyProcess(cacheDirectory: cache)

        let second = try serve(["--listen", "127.0.0.1:0", "--cache-dir", cache])

        let line = try #require(second.failureLine)
        #expect(
            line.contains("process \(first.process.pid),") && line.contains(first.baseURL)
                && line.hasSuffix("; stop it or choose another --cache-dir"), "\(line)")
        #expect(try first.get("/healthz").status == 200)
    }

    @Test func aTakenPortIsNamed() throws {
        let first = try ProxyProcess(cacheDirectory: cache)

        let second = try serve(["--listen", "127.0.0.1:\(first.port)", "--cache-dir", directory.file("other")])

        let line = try #require(second.failureLine)
        #expect(
            line.contains("127.0.0.1:\(first.port)")
                && line.hasSuffix("; another process has this port, choose another with --listen"), "\(line)")
        #expect(try first.get("/healthz").status == 200)
    }

    @Test(arguments: [
        (["--max-size", "15MB"], "--max-size: '15MB' is too small; write 16MB or more"),
        (["--allow", "nas.local", "--allow", "not/valid"], "--allow: 'not/valid' is not a host name"),
        (["--listen", "nonsense"], "--listen: cannot listen on 'nonsense'"),
        (["--listen", "127.0.0.1:65536"], "--listen: cannot listen on '127.0.0.1:65536'"),
        (["--threads", "0"], "--threads: 0 is out of range"),
        (["--cache-dir", ""], "--cache-dir: is empty"),
    ])
    func aSettingThatCannotWorkIsWrongUsage(arguments: [String], named: String) throws {
        let outcome = try serve(["--cache-dir", cache] + arguments)
        #expect(outcome.exit == .exited(2) && outcome.stdout == "")
        #expect(
            outcome.stderr.hasPrefix("Error: \(named)") && outcome.stderr.contains("Usage: reelcache serve"),
            "\(outcome.stderr)")
        #expect(!FileManager.default.fileExists(atPath: cache))
    }

    /// Each value alone is right. A unit would be started again in vain after another exit code.
    @Test(arguments: [
        ("parents: [http://10.0.0.5:7335, http://10.0.0.5:7335]", "parents: ", true),
        (
            "targeted_fields: [\((1...17).map { "A\($0)-Cache-Control" }.joined(separator: ", "))]",
            "targeted_fields: ", true
        ),
        ("proxy_protocol: true", "proxy_protocol: is true, but trusted is empty", false),
    ])
    func settingsThatCannotWorkTogetherAreWrongUsage(text: String, named: String, isOfFile: Bool) throws {
        let file = directory.file("reelcache.yaml")
        try "log_level: info\n\(text)\n".write(toFile: file, atomically: true, encoding: .utf8)
        let outcome = try serve(["--cache-dir", cache, "--config", file])
        #expect(outcome.exit == .exited(2) && outcome.stderr.contains("\(file):2:1: \(named)"), "\(outcome)")
        let checked = try ReelcacheCommand.run(["config", "check", file])
        #expect(checked.stdout.contains("\(file):2:1: \(named)") == isOfFile, "\(checked)")
    }

    @Test func aFileOfCertificatesThatIsNotThereIsNamed() throws {
        let line = try #require(try serve(["--cache-dir", cache, "--ca-file", directory.file("none.pem")]).failureLine)
        #expect(line.contains(directory.file("none.pem")), "\(line)")
    }

    @Test func aCacheDirectoryThatIsAFileIsNamed() throws {
        try Data("mine".utf8).write(to: URL(fileURLWithPath: cache))

        let line = try #require(try serve(["--listen", "127.0.0.1:0", "--cache-dir", cache]).failureLine)

        #expect(line.contains(cache) && line.hasSuffix("; choose another --cache-dir"), "\(line)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: cache)) == Data("mine".utf8))
    }

    /// `/proc` takes files from nobody, not even from root.
    @Test(arguments: ["/proc", "/proc/reelcache", "/dev/null/reelcache"])
    func aPlaceThatTakesNoCacheIsNamed(place: String) throws {
        let line = try #require(try serve(["--listen", "127.0.0.1:0", "--cache-dir", place]).failureLine)
        #expect(line.contains(place), "\(line)")
    }

    @Test(.enabled(if: geteuid() != 0, "root may write everywhere"))
    func aCacheDirectoryThatIsReadOnlyIsNamed() throws {
        try FileManager.default.createDirectory(
            atPath: cache, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o500])
        let line = try #require(try serve(["--listen", "127.0.0.1:0", "--cache-dir", cache]).failureLine)
        #expect(line.contains(cache), "\(line)")
    }

    @Test(arguments: [
        ["--max-size", "foo"], ["--max-size", "-1GB"], ["--min-free", "much"], ["--threads", "two"],
        ["--log-level", "loud"], ["--loop"],
        ["--listen"], ["film.mp4"],
    ])
    func wrongUsageIs2(arguments: [String]) throws {
        let outcome = try serve(["--cache-dir", cache] + arguments)
        #expect(outcome.exit == .exited(2))
        #expect(outcome.stdout == "")
        #expect(
            outcome.stderr.hasPrefix("Error: ") && outcome.stderr.contains("Usage: reelcache serve"),
            "\(outcome.stderr)")
        #expect(!FileManager.default.fileExists(atPath: cache))
    }
}
