import Foundation
import TestSupport
import Testing

/// `reelcache pin`, `unpin` and `rm` of all that match.
@Suite struct BulkTests {
    private static let paths = ["/a/1.mp4", "/a/2.mp4", "/b/1.mp4"]

    private func pinned(_ shelf: Shelf) throws -> [String] {
        let resources = try #require(shelf.json("ls", "--sort", "name")["resources"] as? [[String: Any]])
        return resources.filter { $0["is_pinned"] as? Bool == true }.map {
            ($0["url"] as? String ?? "none").replacing(shelf.origin.url(""), with: "")
        }
    }

    @Test func whatMatchesIsPinnedAndUnpinned() throws {
        let shelf = try Shelf(whole: Self.paths)
        let url = shelf.origin.url("/a/")
        #expect(
            try shelf.say("pin", url + "*").lines == ["pinned \(url)1.mp4, 1.00 MB", "pinned \(url)2.mp4, 1.00 MB"])
        #expect(try pinned(shelf) == ["/a/1.mp4", "/a/2.mp4"])
        _ = try shelf.say("unpin", "--filter", "/A/2.")
        #expect(try pinned(shelf) == ["/a/1.mp4"])
        // As a player would ask the proxy for it.
        _ = try shelf.say("pin", "http://localhost:7335" + ProxyProcess.target(shelf.origin.url("/b/*")))
        #expect(try pinned(shelf) == ["/a/1.mp4", "/b/1.mp4"])
        #expect(try shelf.say("unpin", "--all").lines.count == 2)
        #expect(try shelf.run("unpin", "--all").failureLine == "reelcache: nothing is pinned")
    }

    @Test func whatMatchesIsRemoved() throws {
        let shelf = try Shelf(whole: Self.paths)
        _ = try shelf.say("pin", shelf.origin.url("/a/1.mp4"))
        let tried = try shelf.say("rm", shelf.origin.url("/a/*"), "--dry-run")
        #expect(tried.contains("  pinned  1.mp4\n") && tried.contains("\nwould remove 2 resources; 2."), "\(tried)")
        #expect(try shelf.names == Self.paths)
        // What is named by a pattern goes, pinned or not.
        let removed = try shelf.json("rm", shelf.origin.url("/a/*"))
        #expect(removed["resources"] as? Int == 2 && removed["is_dry_run"] as? Bool == false, "\(removed)")
        #expect(try shelf.names == ["/b/1.mp4"])
        #expect(try shelf.say("rm", "--filter", ".MP4").hasPrefix("removed 1 resource; "))
        #expect(try shelf.names == [])
    }

    /// A path may have a * as it may have any letter: scripts pass on what `ls` lists.
    @Test func urlWithAStarThatIsCachedIsThatOne() throws {
        let shelf = try Shelf(whole: ["/a*b.mp4", "/a/b.mp4"])
        #expect(try shelf.say("rm", shelf.origin.url("/a*b.mp4")).hasPrefix("removed 1 resource; "))
        #expect(try shelf.names == ["/a/b.mp4"])
        #expect(try shelf.say("rm", shelf.origin.url("/a*b.mp4")).hasPrefix("removed 1 resource; "))
        #expect(try shelf.names == [])
    }

    @Test(arguments: [false, true]) func whatWasDownloadedInACategoryIsFound(isCleared: Bool) throws {
        let shelf = try Shelf()
        for path in Self.paths { shelf.origin.serve(path, shelf.film) }
        let flags = ["--allow", "127.0.0.1", "--cache-dir", shelf.cache.path, "--quiet"]
        let urls = ["/a/1.mp4", "/b/1.mp4"].map { shelf.origin.url($0) }
        #expect(try ReelcacheCommand.run(["prefetch"] + urls + ["--category", "news"] + flags).exit == .exited(0))
        #expect(try ReelcacheCommand.run(["prefetch", shelf.origin.url("/a/2.mp4")] + flags).exit == .exited(0))
        // The history is not needed for that.
        if isCleared { #expect(try shelf.run("downloads", "clear").exit == .exited(0)) }
        let listed = try #require(
            shelf.json("ls", "--category", "news", "--sort", "name")["resources"] as? [[String: Any]])
        #expect(listed.map { $0["url"] as? String } == urls)
        #expect(try shelf.say("unpin", "--category", "news").lines.count == 2)
        #expect(try pinned(shelf) == ["/a/2.mp4"])
        #expect(try shelf.say("rm", "--category", "news").hasPrefix("removed 2 resources; "))
        #expect(try shelf.names == ["/a/2.mp4"])
        let line = try #require(try shelf.run("rm", "--category", "news").failureLine)
        #expect(isCleared || line == "reelcache: nothing downloaded in the category 'news' is cached")
        #expect(
            try #require(try shelf.run("pin", "--category", "none").failureLine).contains(
                "no download has the category 'none'"))
    }

    @Test func whereNothingMatchesNothingIsDone() throws {
        let shelf = try Shelf(whole: ["/a/1.mp4"])
        for (arguments, words) in [
            ([shelf.origin.url("/none/*")], "no cached URL matches \(shelf.origin.url("/none/*"))"),
            (["--filter", "none"], "no cached URL contains 'none'"),
        ] {
            for command in ["pin", "unpin", "rm"] {
                let outcome = try ReelcacheCommand.run([command] + arguments + ["--cache-dir", shelf.cache.path])
                #expect(
                    outcome.exit == .exited(1) && outcome.stdout == "" && outcome.stderr == "reelcache: \(words)\n",
                    "\(command): \(outcome)")
            }
        }
        #expect(try shelf.names == ["/a/1.mp4"])
    }

    /// On a terminal it is asked before more goes than was named.
    @Test(arguments: Ownership.allCases) func onATerminalBulkIsConfirmed(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: Self.paths)
        _ = try shelf.say("pin", shelf.origin.url("/a/1.mp4"))
        func run(_ arguments: [String], answer: String?) throws -> TerminalProcess {
            let terminal = try TerminalProcess.reelcache(["rm"] + arguments + ["--cache-dir", shelf.cache.path])
            if let answer {
                try terminal.waitForLine(containing: "[y/N]")
                try terminal.type(answer + "\n")
            }
            _ = try terminal.waitForExit()
            return terminal
        }
        let refused = try run(["--filter", "/a/"], answer: "n")
        #expect(refused.lines.contains { $0.hasSuffix("  pinned  1.mp4") }, "\(refused.lines)")
        #expect(
            refused.lines.contains { $0.hasPrefix("Remove 2 resources (1 of them pinned), 2.") }, "\(refused.lines)")
        #expect(refused.lines.last == "reelcache: nothing was removed")
        #expect(try shelf.names == Self.paths)
        _ = try run([shelf.origin.url("/a/*")], answer: "y")
        #expect(try shelf.names == ["/b/1.mp4"])
        #expect(
            try run(["--filter", "/b/", "--yes"], answer: nil).lines.first?.hasPrefix("removed 1 resource; ") == true)
        #expect(try shelf.names == [])
    }

    @Test(arguments: [
        ["rm", "--filter", "a", "--all"], ["rm", "--filter", "a", "--category", "b"], ["rm", "--filter", ""],
        ["rm", "http://a/b", "--filter", "a"], ["pin"],
        ["pin", "--all"], ["unpin"], ["unpin", "--all", "--filter", "a"], ["pin", "--category", ""],
        ["ls", "--category", ""],
    ])
    func wrongUsageIs2(arguments: [String]) throws {
        let cache = try TemporaryDirectory()
        let outcome = try ReelcacheCommand.run(arguments + ["--cache-dir", cache.path])
        #expect(
            outcome.exit == .exited(2) && outcome.stderr.hasPrefix("Error: ")
                && outcome.stderr.contains("Usage: reelcache \(arguments[0]) "), "\(outcome)")
    }

    // MARK: On a terminal

    @Test func listsFitANarrowTerminalAndAreRead() throws {
        let shelf = try Shelf(whole: ["/Gr%C3%BC%C3%9Fe%20a.mp4"])
        shelf.origin.serve("/a.mp4", shelf.film)
        _ = try shelf.say("prefetch", "--detach", shelf.origin.url("/Gr%C3%BC%C3%9Fe%20a.mp4"))
        for columns in [50, 80] {
            for command in [["ls"], ["downloads", "--all"]] {
                let terminal = try TerminalProcess.reelcache(
                    command + ["--cache-dir", shelf.cache.path], columns: columns)
                #expect(try terminal.waitForExit() == .exited(0))
                #expect(
                    terminal.lines.count == 3 && terminal.lines.allSatisfy { $0.count <= columns }, "\(terminal.lines)")
                #expect(terminal.lines[1].hasSuffix("Grüße a.mp4"), "\(terminal.lines)")
            }
        }
        // In a pipe the URL is exact.
        #expect(try shelf.say("ls").lines[1].hasSuffix("/Gr%C3%BC%C3%9Fe%20a.mp4"))
        #expect(try shelf.names == ["/Gr%C3%BC%C3%9Fe%20a.mp4"])
        // And what is read can be given back.
        #expect(try shelf.say("pin", shelf.origin.url("/Grüße%20a.mp4")).hasPrefix("pinned "))
    }
}
