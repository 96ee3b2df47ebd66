import Foundation
import TestSupport
import Testing

/// `reelcache export --all`, `import` of an archive, and `warm`.
@Suite struct ArchiveTests {
    private let directory: TemporaryDirectory
    private var file: String { directory.file("cache.rca") }

    init() throws { directory = try TemporaryDirectory() }

    private func size(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
    }

    @Test(arguments: Ownership.allCases, Ownership.allCases)
    func anArchiveFillsAnotherCache(of ownership: Ownership, into other: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4"], parts: ["/b.mp4"])
        _ = try shelf.say("pin", shelf.origin.url("/a.mp4"))
        #expect(try shelf.say("export", "--all", "-o", file).hasPrefix("exported the cache to \(file), 1.07 MB"))
        let second = try Shelf(other)
        #expect(try second.say("import", file) == "imported 2 resources, 1.07 MB\n")
        #expect(try second.say("import", file) == "imported 0 resources, 0 bytes; 2 there already\n")
        let shown = try second.json("show", shelf.origin.url("/a.mp4"))["resource"] as? [String: Any]
        #expect(shown?["is_pinned"] as? Bool == true, "\(String(describing: shown))")
        #expect(try second.say("verify").hasSuffix("everything is sound\n"))
        shelf.origin.stop()
        let proxy = try second.proxy ?? ProxyProcess(cacheDirectory: second.cache.path)
        let response = try proxy.get(shelf.origin.url("/a.mp4"))
        #expect(response.status == 200 && shelf.film.difference(response.body, from: 0..<shelf.film.size) == nil)
    }

    /// It has the tokens of all URLs.
    @Test(arguments: Ownership.allCases) func anArchiveIsForItsOwnerOnly(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4"])
        for _ in 0..<2 {
            _ = try shelf.say("export", "--all", "-o", file, "--force")
            let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            chmod(file, 0o644)
        }
    }

    @Test func aPipeNeedsNoFile() throws {
        let shelf = try Shelf(.running, whole: ["/a.mp4"])
        let second = try TemporaryDirectory(), program = try ReelcacheCommand.path()
        let outcome = try ChildProcess.run(
            "/bin/bash",
            [
                "-c",
                "set -o pipefail; '\(program)' export --all --cache-dir '\(shelf.cache.path)' | '\(program)' import - --json --cache-dir '\(second.path)'",
            ], environment: ReelcacheCommand.neutral)
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        #expect((try outcome.members["report"] as? [String: Any])?["added"] as? Int == 1)
    }

    @Test(arguments: Ownership.allCases) func aCutArchiveIsToldInOneLine(ownership: Ownership) throws {
        let shelf = try Shelf(.alone, whole: ["/a.mp4", "/b.mp4"])
        _ = try shelf.say("export", "--all", "-o", file)
        let whole = try Data(contentsOf: URL(fileURLWithPath: file)), cut = directory.file("cut.rca")
        try whole.prefix(500_000).write(to: URL(fileURLWithPath: cut))
        let second = try Shelf(ownership)
        let line = try #require(try second.run("import", cut).failureLine)
        #expect(
            line.contains("cut short at byte 500000, in http") && line.contains("import a whole archive"), "\(line)")
        var damaged = whole
        damaged[300_000] ^= 1
        try damaged.write(to: URL(fileURLWithPath: cut))
        let damage = try #require(try second.run("import", cut).failureLine)
        #expect(damage.contains("damaged at byte") && damage.contains("the checksum of a chunk"), "\(damage)")
        try whole.prefix(1_500_000).write(to: URL(fileURLWithPath: cut))
        let outcome = try second.run("import", cut)
        #expect(outcome.exit == .exited(3) && outcome.stdout == "imported 1 resource, 1.00 MB\n", "\(outcome)")
        #expect(outcome.stderr.contains("cut short at byte 1500000") && outcome.stderr.lines.count == 1)
        #expect(try second.say("import", file) == "imported 1 resource, 1.00 MB; 1 there already\n")
    }

    @Test func wrongUseIsTold() throws {
        let shelf = try Shelf(.alone, whole: ["/a.mp4"])
        for arguments in [
            ["export", "--all", "http://a.example/"], ["export"], ["export", "--all", "--fetch"],
            ["import", "-", "--as", "http://a.example/"], ["import", "x", "--replace"],
            ["warm", "--from", "nonsense"], ["warm", "--from", "http://a.example/path"], ["warm"],
        ] {
            let outcome = try ReelcacheCommand.run(arguments + ["--cache-dir", shelf.cache.path])
            #expect(outcome.exit == .exited(2) && outcome.stdout == "", "\(arguments): \(outcome)")
        }
        try Data("a film".utf8).write(to: URL(fileURLWithPath: file))
        let line = try #require(try shelf.run("import", file).failureLine)
        #expect(line.contains("not an archive") && line.contains("--as URL"), "\(line)")
    }

    @Test(arguments: Ownership.allCases) func aNodeFillsAnotherAtARate(ownership: Ownership) throws {
        let shelf = try Shelf(.running, whole: ["/a.mp4", "/b.mp4"], parts: ["/c.mp4"])
        let node = try #require(shelf.proxy).baseURL, second = try Shelf(ownership)
        let json = try second.json("warm", "--from", node, "--rate", "20MB")
        let report = try #require(json["report"] as? [String: Any])
        #expect(report["added"] as? Int == 3 && json["listed"] as? Int == 3, "\(json)")
        #expect(
            try second.say("warm", "--from", node)
                == "copied 0 resources, 0 bytes\n3 resources there already, or newer\n")
        let third = try Shelf(.alone)
        let newest = try third.json("warm", "--from", node, "--newest", "1500kB")
        #expect((newest["report"] as? [String: Any])?["added"] as? Int == 2, "\(newest)")
    }

    @Test func aNodeThatCannotBeReadIsToldInOneLine() throws {
        let second = try Shelf(.alone), wrong = directory.file("token")
        try Data(String(repeating: "0", count: 64).utf8).write(to: URL(fileURLWithPath: wrong))
        // It answers requests of other machines, so that reading takes a token.
        let cache = try TemporaryDirectory()
        let process = try ReelcacheCommand.start(["serve", "--listen", ":0", "--cache-dir", cache.path])
        let port = try #require(try process.waitForLine(containing: " serves at ").firstMatch(of: /:(\d+),/)).1
        let node = "http://127.0.0.1:\(port)"
        for (arguments, text) in [
            (["--token-file", wrong], "does not accept the token"), ([], "a request without a token"),
        ] {
            let outcome = try ReelcacheCommand.run(
                ["warm", "--from", node] + arguments + ["--cache-dir", second.cache.path])
            let line = try #require(outcome.failureLine, "\(outcome)")
            #expect(line.contains(text) && line.contains("--token-file FILE"), "\(line)")
        }
        let outcome = try ReelcacheCommand.run(
            [
                "warm", "--from", node, "--token-file", cache.file("control-token-read"), "--cache-dir",
                second.cache.path,
            ])
        #expect(outcome.exit == .exited(0) && outcome.stdout == "copied 0 resources, 0 bytes\n", "\(outcome)")
        #expect(try process.terminate() == .exited(0))
        let page = try ScriptedOrigin()
        let line = try #require(try second.run("warm", "--from", page.url("")).failureLine)
        #expect(line.contains("answers 404"), "\(line)")
    }

    @Test func aBrokenConnectionContinues() throws {
        let shelf = try Shelf(.running, whole: (0..<6).map { "/\($0).mp4" })
        let node = try #require(shelf.proxy), relay = try BreakingRelay(to: node.port, after: 2_500_000)
        let second = try Shelf(.alone)
        let json = try second.json("warm", "--from", "http://127.0.0.1:\(relay.port)")
        let report = try #require(json["report"] as? [String: Any])
        let added = report["added"] as? Int ?? 0, extended = report["extended"] as? Int ?? 0
        #expect(added + extended == 6 && relay.breaks >= 1, "\(json)")
        let received = try #require(json["received_bytes"] as? Int)
        #expect(received >= 6_000_000 && received < 7_000_000, "little moves twice")
        #expect(try second.say("verify").hasSuffix("everything is sound\n"))
    }

    /// No attempt brings a whole resource, and there are more breaks than attempts without any progress.
    @Test func aConnectionThatAlwaysBreaksGetsAhead() throws {
        let shelf = try Shelf(.running, whole: (0..<3).map { "/\($0).mp4" })
        let node = try #require(shelf.proxy), relay = try BreakingRelay(to: node.port, after: 350_000)
        let second = try Shelf(.alone)
        let outcome = try second.run("warm", "--from", "http://127.0.0.1:\(relay.port)")
        #expect(outcome.exit == .exited(0) && outcome.stdout == "copied 3 resources, 3.00 MB\n", "\(outcome)")
        #expect(relay.breaks >= 7)
        #expect(try second.say("verify").hasSuffix("everything is sound\n"))
    }
}
