import Foundation
import TestSupport
import Testing

/// `reelcache dashboard`
@Suite struct DashboardCommandTests {
    private let cache: TemporaryDirectory

    init() throws { cache = try TemporaryDirectory() }

    @Test func linkIsPrintedAndNothingElse() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let outcome = try ReelcacheCommand.run(["dashboard", "--print", "--cache-dir", cache.path])
        #expect(outcome.exit == .exited(0) && outcome.stderr.isEmpty)
        let link = try #require(outcome.stdout.wholeMatch(of: /(http:.*)\/api\/#link=([0-9a-f]{32})\n/))
        #expect(String(link.1) == proxy.baseURL)
        let other = try ReelcacheCommand.run(["dashboard", "--print", "--cache-dir", cache.path])
        #expect(other.stdout != outcome.stdout)
    }

    /// Other users see the arguments of programs, but not this file.
    @Test func browserGetsAFileThatOnlyItsOwnerCanRead() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let programs = try TemporaryDirectory(), session = try TemporaryDirectory()
        try programs.makeProgram("xdg-open", "echo \"$@\" >'\(programs.file("arguments"))'")
        for directory in [session.path, nil] {
            let outcome = try ReelcacheCommand.run(
                ["dashboard", "--cache-dir", cache.path],
                environment: ["PATH": "\(programs.path):/usr/bin:/bin", "XDG_RUNTIME_DIR": directory])
            #expect(outcome.exit == .exited(0), "\(outcome)")
            let hint = "if that finds no file, use reelcache dashboard --print"
            #expect(outcome.stdout == "opened \(proxy.baseURL)/api/ in the browser; \(hint)\n")
            let file = (directory ?? cache.path) + "/reelcache-dashboard.html"
            // A slow browser is not waited for.
            let arguments = { (try? String(contentsOfFile: programs.file("arguments"), encoding: .utf8)) ?? "" }
            try eventually("the browser's arguments", instead: arguments()) { arguments() == "file://\(file)\n" }
            var info = stat()
            #expect(stat(file, &info) == 0 && info.st_mode & 0o777 == 0o600)
            #expect(try String(contentsOfFile: file, encoding: .utf8).contains("url=\(proxy.baseURL)/api/#link="))
        }
    }

    /// Without a desktop, xdg-open lasts as long as the browser.
    @Test func browserThatStaysIsNotWaitedFor() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let programs = try TemporaryDirectory()
        let end = programs.file("end")
        #expect(mkfifo(end, 0o600) == 0)
        try programs.makeProgram("xdg-open", "read line <'\(end)'")
        let outcome = try ReelcacheCommand.run(
            ["dashboard", "--cache-dir", cache.path], environment: ["PATH": "\(programs.path):/usr/bin:/bin"])
        #expect(outcome.exit == .exited(0) && outcome.stdout.hasPrefix("opened \(proxy.baseURL)/"), "\(outcome)")
        // The browser is closed.
        close(open(end, O_WRONLY | O_CLOEXEC))
    }

    /// The link is not put where others can read it.
    @Test func openDirectoryIsNotUsed() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let open = try TemporaryDirectory()
        chmod(open.path, 0o755)
        let outcome = try ReelcacheCommand.run(
            ["dashboard", "--cache-dir", cache.path],
            environment: ["PATH": "/nowhere", "XDG_RUNTIME_DIR": open.path])
        #expect(outcome.exit == .exited(1))
        #expect(outcome.stderr.contains("--print"), "\(outcome.stderr)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: open.path).isEmpty)
        withExtendedLifetime(proxy) {}
    }

    @Test func withoutAProxyItSaysHowToStartOne() throws {
        let outcome = try ReelcacheCommand.run(["dashboard", "--cache-dir", cache.path])
        #expect(outcome.exit == .exited(1))
        #expect(outcome.stderr.contains("start one with reelcache serve"))
    }
}
