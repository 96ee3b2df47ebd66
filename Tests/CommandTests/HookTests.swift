import Foundation
import TestSupport
import Testing

/// The programs that `on_completed` and `on_failed` name.
@Suite struct HookTests {
    private let directory: TemporaryDirectory
    private let origin: ScriptedOrigin

    init() throws {
        (directory, origin) = (try TemporaryDirectory(), try ScriptedOrigin())
        origin.serve("/film.mp4", Media(seed: 42, size: 200_000))
        // What a name from outside may contain is text for the program, whatever a shell would make of it.
        origin.script("/film.mp4") {
            $0.headers = [("Content-Disposition", "attachment; filename=\"a $(touch pwned) b.mp4\"")]
        }
    }

    private var cache: String { directory.file("cache") }

    /// Writes the configuration, and returns the flags for it.
    private func flags(_ yaml: String) throws -> [String] {
        try Data(yaml.utf8).write(to: URL(fileURLWithPath: directory.file("r.yaml")))
        return ["--config", directory.file("r.yaml"), "--cache-dir", cache]
    }

    private func prefetch(_ path: String, _ flags: [String], environment: [String: String?] = [:]) throws
        -> ChildProcess.Outcome
    {
        try ReelcacheCommand.run(
            ["prefetch", "--quiet", origin.url(path)] + flags,
            environment: environment.merging(["REELCACHE_ALLOW": "127.0.0.1"]) { $1 })
    }

    private static let notes = "env | grep -E '^(DOWNLOAD_|REELCACHE_|SECRET)' | sort > \"$here/$n\""

    /// Also by a command that runs no proxy: it ends once the program has ended.
    @Test func programLearnsFromItsEnvironmentWhatHasCompleted() throws {
        let hook = try ScriptedResolver("[ $n = 1 ] && sleep 0.3; " + Self.notes)
        let flags = try flags("on_completed: [\(hook.path), one, '--two $(id)']")
        #expect(try prefetch("/film.mp4", flags, environment: ["SECRET": "x"]).exit == .exited(0))
        #expect(hook.runs == ["one --two $(id)"])
        let text = try String(contentsOfFile: hook.file("1"), encoding: .utf8)
        #expect(
            text == """
                DOWNLOAD_BYTES=200000
                DOWNLOAD_ID=1
                DOWNLOAD_STATE=completed
                DOWNLOAD_TITLE=a $(touch pwned) b.mp4
                DOWNLOAD_URL=\(origin.url("/film.mp4"))
                REELCACHE_CACHE_DIR=\(cache)

                """)
    }

    @Test func failureHasItsReason() throws {
        let hook = try ScriptedResolver(Self.notes), flags = try flags("on_failed: [\(hook.path), x]")
        #expect(try prefetch("/download?token=sesame", flags).exit == .exited(1))
        let text = try String(contentsOfFile: hook.file("1"), encoding: .utf8)
        let ends = /DOWNLOAD_REASON=.*404.*\nDOWNLOAD_STATE=failed\nDOWNLOAD_TITLE=download\?token=\*\*\*\n/
        #expect(text.contains(ends), "\(text)")
        #expect(try prefetch("/film.mp4", flags).exit == .exited(0))
        #expect(hook.runs.count == 1)
    }

    /// Downloads don't wait for them; each that fails is one warning, and the next one runs all the same.
    @Test func programsRunOneAfterTheOtherAndDelayNothing() async throws {
        let hook = try ScriptedResolver(ScriptedResolver.wait(for: "go") + "\necho \"it is $n\" >&2; exit $n")
        let flags = try flags("on_completed: [\(hook.path), x]\nallow: [127.0.0.1]")
        let proxy = try ProxyProcess(cacheDirectory: cache, arguments: Array(flags.prefix(2)))
        for number in 1...3 {
            origin.serve("/\(number).mp4", Media(seed: UInt64(number), size: 100_000))
            #expect(try prefetch("/\(number).mp4", flags).exit == .exited(0))
        }
        try eventually("the first run") { hook.runs.count == 1 }
        try hook.touch("go")
        try await blocking {
            for number in 1...3 {
                _ = try proxy.process.waitForLine(
                    containing: "on_completed: resolver ended with \(number): it is \(number)", on: .stderr)
            }
        }
        #expect(hook.runs.count == 3)
        // What has ended is not told again.
        #expect(try proxy.process.terminate() == .exited(0))
        _ = try ProxyProcess(cacheDirectory: cache, arguments: Array(flags.prefix(2)))
        #expect(hook.runs.count == 3)
    }

    /// On SIGHUP, another program is run from then on.
    @Test func commandIsReloaded() async throws {
        let one = try ScriptedResolver(""), other = try ScriptedResolver("")
        let proxy = try ProxyProcess(
            cacheDirectory: cache, arguments: Array(try flags("on_completed: [\(one.path), x]").prefix(2)))
        let flags = try flags("on_completed: [\(other.path), x]")
        let reload = try ReelcacheCommand.run(["reload"] + flags)
        #expect(reload.exit == .exited(0) && reload.stdout.contains(" is valid; the proxy (process "), "\(reload)")
        try await blocking { _ = try proxy.process.waitForLine(containing: "on_completed", on: .stderr) }
        #expect(try prefetch("/film.mp4", flags).exit == .exited(0))
        try eventually("a run of the other") { other.runs.count == 1 }
        #expect(one.runs.isEmpty)
        let broken = try ReelcacheCommand.run(["reload"] + (try self.flags("max_size: much")))
        #expect(broken.exit == .exited(1) && broken.stdout.contains("max_size"), "\(broken)")
    }

    @Test(arguments: ["on_completed: touch x", "on_failed: [\"\"]", "on_failed: {a: b}"])
    func whatIsNoCommandIsRefused(yaml: String) throws {
        let outcome = try ReelcacheCommand.run(["config", "check"] + (try flags(yaml)))
        #expect(outcome.exit == .exited(1) && outcome.stdout.contains("r.yaml:1"), "\(outcome)")
    }

    @Test func onlyTheFileNamesPrograms() throws {
        let variable = try ReelcacheCommand.run(
            ["ls"] + (try flags("")), environment: ["REELCACHE_ON_COMPLETED": "[touch, x]"])
        #expect(variable.exit != .exited(0) && variable.stderr.contains("configuration file only"), "\(variable)")
        let flag = try ReelcacheCommand.run(["serve", "--on-completed", "x"] + (try flags("")))
        #expect(flag.exit == .exited(2), "\(flag)")
    }
}
