import Foundation
import TestSupport
import Testing

/// `reelcache downloads` and `reelcache history`.
@Suite struct DownloadsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A shelf with four downloads: of these two wait at the origin, a third has failed, and a fourth is done.
    private func stalled() throws -> Shelf {
        let shelf = try Shelf()
        for path in ["/a.mp4", "/b.mp4"] {
            shelf.origin.serve(path, shelf.film)
            shelf.origin.script(path) { $0.stallAfter = 524_288 }
        }
        shelf.origin.script("/gone.mp4") { ($0.status, $0.body) = (404, []) }
        shelf.origin.serve("/done.mp4", bytes: [UInt8](repeating: 1, count: 50_000))
        for (path, category) in [("/gone.mp4", "old"), ("/done.mp4", "new")] {
            _ = try shelf.run("prefetch", shelf.origin.url(path), "--category", category)
        }
        for path in ["/a.mp4", "/b.mp4"] { _ = try shelf.say("prefetch", "--detach", shelf.origin.url(path)) }
        let news = try ReelcacheCommand.start(["downloads", "watch", "--json", "--cache-dir", shelf.cache.path])
        for path in ["/a.mp4", "/b.mp4"] {
            try news.waitForLine("the half of \(path)") {
                $0.contains("\(path)\"") && $0.contains("\"bytes\":524288,") && $0.contains("\"total\":1000000,")
            }
        }
        return shelf
    }

    private func states(_ shelf: Shelf, _ flags: String...) throws -> [String: String] {
        let outcome = try ReelcacheCommand.run(["downloads", "--json", "--cache-dir", shelf.cache.path] + flags)
        let downloads = try #require(try outcome.members["downloads"] as? [[String: Any]], "\(outcome)")
        return Dictionary(
            uniqueKeysWithValues: downloads.map {
                (($0["url"] as? String ?? "").replacing(shelf.origin.url(""), with: ""), $0["state"] as? String ?? "")
            })
    }

    @Test(arguments: [
        ["downloads", "--state", "gone"], ["downloads", "--all", "--state", "failed"], ["downloads", "pause"],
        ["downloads", "pause", "1", "--all"], ["downloads", "move", "1"],
        ["downloads", "move", "--first"], ["downloads", "move", "1", "--first", "--last"],
        ["downloads", "move", "1", "--to", "0"], ["downloads", "set"],
        ["downloads", "set", "--max-active", "0"], ["downloads", "set", "--max-active", "65"],
        ["downloads", "set", "--limit-rate", "fast"], ["downloads", "clear", "1"],
        ["downloads", "nonsense"], ["history", "--limit", "0"], ["history", "extra"],
    ])
    func wrongUsageIs2(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(arguments + ["--cache-dir", directory.file("cache")])
        #expect(outcome.exit == .exited(2) && outcome.stdout == "" && outcome.stderr.hasPrefix("Error: "), "\(outcome)")
        #expect(!FileManager.default.fileExists(atPath: directory.file("cache")))
    }

    @Test func whereThereIsNoCacheThereAreNoDownloads() throws {
        let cache = directory.file("cache")
        for (arguments, said) in [
            (["downloads"], "no downloads\n"), (["downloads", "list", "--all"], "no downloads\n"),
            (["history"], "0 downloads; 0 bytes completed\n"), (["history", "--json"], "[\n\n]\n"),
            (["downloads", "clear"], "forgot 0 downloads\n"), (["downloads", "pause", "--all"], "nothing to pause\n"),
        ] {
            let outcome = try ReelcacheCommand.run(arguments + ["--cache-dir", cache])
            #expect(outcome.exit == .exited(0) && outcome.stdout == said && outcome.stderr == "", "\(outcome)")
        }
        for arguments in [
            ["downloads", "pause", "1"], ["downloads", "watch"], ["downloads", "set", "--max-active", "2"],
            ["downloads", "move", "1", "--first"],
        ] {
            let line = try #require(try ReelcacheCommand.run(arguments + ["--cache-dir", cache]).failureLine)
            #expect(line.contains(cache), "\(line)")
        }
        let watch = try ReelcacheCommand.run(["downloads", "watch", "--json", "--cache-dir", cache])
        #expect(watch.exit == .exited(1) && watch.lines.count == 1, "\(watch)")
        #expect(
            try watch.members["event"] as? String == "error"
                && watch.stderr == "reelcache: \(watch.members["error"] as? String ?? "")\n", "\(watch)")
        #expect(!FileManager.default.fileExists(atPath: cache))
    }

    @Test func theQueueIsListed() throws {
        let shelf = try stalled()
        let lines = try shelf.say("downloads").lines
        #expect(
            lines.first?.split(separator: " ").map(String.init) == [
                "ID", "STATE", "PRIORITY", "PROGRESS", "RATE", "ETA", "URL",
            ])
        for path in ["/a.mp4", "/b.mp4"] {
            #expect(
                lines.contains {
                    $0.contains("  downloading  normal    ") && $0.contains("% of 1.00 MB")
                        && $0.hasSuffix("  \(shelf.origin.url(path))")
                }, "\(lines)")
        }
        let failed = try #require(
            lines.firstIndex { $0.contains("  failed ") && $0.hasSuffix(shelf.origin.url("/gone.mp4")) })
        #expect(lines[failed + 1].hasPrefix("    ") && lines[failed + 1].contains("404"))
        #expect(lines.last?.hasPrefix("2 downloading, 1 failed") == true, "\(lines)")
        #expect(try states(shelf) == ["/a.mp4": "downloading", "/b.mp4": "downloading", "/gone.mp4": "failed"])
        #expect(try states(shelf, "--all").count == 4)
        #expect(try states(shelf, "--state", "completed") == ["/done.mp4": "completed"])
        #expect(try states(shelf, "--category", "old") == ["/gone.mp4": "failed"])
    }

    @Test(arguments: Ownership.allCases) func downloadsArePausedAndResumed(ownership: Ownership) throws {
        let shelf = try stalled()
        if ownership == .alone { try shelf.close() }
        let waits = ownership == .running ? "downloading" : "waiting"
        let said = try shelf.say("downloads", "pause", shelf.origin.url("/a.mp4"))
        #expect(said.contains("  paused  ") && said.hasSuffix("\(shelf.origin.url("/a.mp4"))\n"), "\(said)")
        #expect(try states(shelf)["/a.mp4"] == "paused")
        #expect(try shelf.say("downloads", "pause", "--all").lines.count == 1)
        #expect(try shelf.say("downloads", "pause", "--all") == "nothing to pause\n")
        #expect(try states(shelf) == ["/a.mp4": "paused", "/b.mp4": "paused", "/gone.mp4": "failed"])
        for path in ["/a.mp4", "/b.mp4"] { shelf.origin.hold(path) }
        #expect(try (shelf.json("downloads", "resume", "--all")["done"] as? [Any])?.count == 2)
        #expect(try states(shelf)["/a.mp4"] == waits)
        if ownership == .alone {
            #expect(
                try shelf.say("downloads").lines.last
                    == "2 waiting, 1 failed; no proxy is running: they continue when one is started, or with reelcache prefetch"
            )
        }
    }

    @Test func downloadsAreCancelledAndTriedAgain() throws {
        let shelf = try stalled()
        #expect(try shelf.say("downloads", "cancel", shelf.origin.url("/b.mp4")).contains("  cancelled  "))
        #expect(try states(shelf)["/b.mp4"] == nil && states(shelf, "--all")["/b.mp4"] == "cancelled")
        #expect(try !shelf.names.contains("/b.mp4"))
        shelf.origin.releaseAll()
        shelf.origin.script("/gone.mp4") { $0.status = nil }
        shelf.origin.serve("/gone.mp4", shelf.film)
        #expect(
            try shelf.say("downloads", "retry", shelf.origin.url("/gone.mp4")).contains(shelf.origin.url("/gone.mp4")))
        #expect(try shelf.run("prefetch", shelf.origin.url("/gone.mp4"), "--allow", "127.0.0.1").exit == .exited(0))
        #expect(shelf.origin.bytesSent("/gone.mp4") == shelf.film.size)
    }

    @Test func whatIsUnknownIsNamedAndTheRestIsDone() throws {
        let shelf = try stalled()
        let outcome = try shelf.run(
            "downloads", "pause", "999", "http://none.example/x", "nonsense", shelf.origin.url("/a.mp4"))
        #expect(outcome.exit == .exited(3) && outcome.lines.count == 1, "\(outcome)")
        let errors = outcome.stderr.lines
        #expect(
            errors.count == 3 && errors[0].contains("999") && errors[1].contains("no download http://none.example/x")
                && errors[2].contains("nonsense"), "\(errors)")
        let failure = try #require(try shelf.run("downloads", "retry", shelf.origin.url("/done.mp4")).failureLine)
        #expect(failure.contains("completed"), "\(failure)")
    }

    @Test func theOrderIsChanged() throws {
        let shelf = try Shelf(.alone)
        let urls = (1...4).map { shelf.origin.url("/\($0).mp4") }
        _ = try shelf.say("prefetch", "--detach", urls[0], urls[1], urls[2], urls[3])
        func order() throws -> [Int] {
            let downloads = try #require(try shelf.json("downloads")["downloads"] as? [[String: Any]])
            return downloads.compactMap { report in urls.firstIndex { $0 == report["url"] as? String }.map { $0 + 1 } }
        }
        #expect(try order() == [1, 2, 3, 4])
        _ = try shelf.say("downloads", "move", urls[2], "--first")
        #expect(try order() == [3, 1, 2, 4])
        _ = try shelf.say("downloads", "move", urls[2], "--last")
        #expect(try order() == [1, 2, 4, 3])
        _ = try shelf.say("downloads", "move", urls[0], "--to", "2")
        #expect(try order() == [2, 1, 4, 3])
        #expect(try shelf.json("downloads", "move", urls[3], "--priority", "high")["priority"] as? String == "high")
        #expect(try order() == [4, 2, 1, 3])
    }

    @Test func whatHoldsForAllIsSetWhereAProxyRuns() throws {
        let shelf = try Shelf()
        #expect(
            try shelf.say("downloads", "set", "--max-active", "1", "--limit-rate", "2MB/s")
                == "at most 1 download at once, 2.00 MB/s together\n")
        #expect(
            try shelf.say("downloads", "set", "--limit-rate", "none")
                == "at most 1 download at once, without a rate limit\n")
        try shelf.close()
        #expect(try #require(try shelf.run("downloads", "set", "--max-active", "1").failureLine).contains("no proxy"))
    }

    @Test func newsAreShownUntilCtrlC() throws {
        let shelf = try stalled()
        let arguments = ["downloads", "watch", "--cache-dir", shelf.cache.path]
        let drawn = try TerminalProcess.reelcache(arguments)
        try drawn.waitForLine(containing: "52 %")
        let piped = try ReelcacheCommand.start(arguments)
        try piped.waitForLine(containing: "downloading a.mp4")
        let json = try ReelcacheCommand.start(arguments + ["--json"])
        try json.waitForLine(containing: "/b.mp4\"")
        #expect(!json.stdout.contains("/gone.mp4") && !piped.stdout.contains("/done.mp4"))
        shelf.origin.release("/a.mp4")
        try drawn.waitForLine(containing: "completed a.mp4, 1.00 MB")
        try piped.waitForLine(containing: "completed a.mp4, 1.00 MB")
        try json.waitForLine("the end of a.mp4") {
            $0.contains("\"state\":\"completed\"") && $0.contains("/a.mp4\"") && $0.contains("\"event\":\"download\"")
        }
        try drawn.interrupt()
        #expect(try drawn.waitForExit() == .exited(0))
        for command in [piped, json] {
            command.signal(SIGINT)
            #expect(try command.waitForExit() == .exited(0))
            #expect(command.stderr == "")
        }
        #expect(try states(shelf)["/b.mp4"] == "downloading")
        let last = try ReelcacheCommand.start(arguments)
        try last.waitForLine(containing: "downloading b.mp4")
        try shelf.close()
        #expect(try last.waitForExit() == .exited(1))
        #expect(last.stderr.contains("has ended"), "\(last.stderr)")
    }

    @Test func whatHasEndedIsTold() throws {
        let shelf = try stalled()
        let lines = try shelf.say("history").lines
        #expect(lines.count == 5 && lines.last == "2 downloads; 50.0 kB completed", "\(lines)")
        #expect(
            lines[0].split(separator: " ").map(String.init) == [
                "FINISHED", "OUTCOME", "SIZE", "TIME", "RATE", "CATEGORY", "URL",
            ])
        #expect(
            lines[1].contains("  completed ") && lines[1].contains("  50.0 kB  ")
                && lines[1].hasSuffix("new       \(shelf.origin.url("/done.mp4"))"), "\(lines)")
        #expect(
            lines[2].contains("  failed ") && lines[2].hasSuffix(shelf.origin.url("/gone.mp4"))
                && lines[3].contains("404"), "\(lines)")
        #expect(try shelf.say("history", "--limit", "1").lines.count == 3)
        let old = try ReelcacheCommand.run(["history", "--json", "--category", "old", "--cache-dir", shelf.cache.path])
        let reports = try #require(JSONSerialization.jsonObject(with: Data(old.stdout.utf8)) as? [[String: Any]])
        #expect(
            reports.count == 1 && reports[0]["state"] as? String == "failed" && reports[0]["finished"] is Int
                && reports[0]["message"] is String, "\(old)")
        #expect(try shelf.say("downloads", "clear") == "forgot 2 downloads\n")
        #expect(try shelf.say("history") == "0 downloads; 0 bytes completed\n")
        #expect(try shelf.names.contains("/done.mp4"))
    }
}
