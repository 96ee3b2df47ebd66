import Foundation
import TestSupport
import Testing

/// `reelcache pin`, `unpin` and `rm`.
@Suite struct RemoveTests {
    @Test func aPinIsShownAndKept() throws {
        let shelf = try Shelf(whole: ["/a.mp4", "/b.mp4"])
        let url = shelf.origin.url("/a.mp4")
        #expect(try shelf.say("pin", url) == "pinned \(url), 1.00 MB\n")
        #expect(try shelf.say("show", url).contains("pinned      yes\n"))
        #expect(try shelf.say("ls", "--sort", "name").lines[1].contains("  pinned  "))
        try shelf.close()
        let done = try #require(shelf.json("unpin", url, shelf.origin.url("/b.mp4"))["done"] as? [[String: Any]])
        #expect(done.map { $0["is_pinned"] as? Bool } == [false, false])
        #expect(try shelf.say("show", url).contains("pinned      no\n"))
    }

    @Test(arguments: Ownership.allCases, ["pin", "rm"]) func whatFailsDoesNotKeepTheRestFromBeingDone(
        ownership: Ownership, command: String
    ) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4"])
        let none = "http://none.example/a.mp4"
        let partly = try shelf.run(command, none, shelf.origin.url("/a.mp4"), "nonsense")
        #expect(partly.exit == .exited(3) && partly.lines.count == 1, "\(partly)")
        #expect(
            partly.stderr.lines.count == 2 && partly.stderr.lines.allSatisfy { $0.hasPrefix("reelcache: ") }
                && partly.stderr.contains(none), "\(partly)")
        let failed = try shelf.run(command, none, "http://none.example/b.mp4", "--json")
        #expect(failed.exit == .exited(1) && failed.stderr.lines.count == 2, "\(failed)")
        let list = try #require(failed.members["failed"] as? [[String: Any]])
        #expect(list.map { $0["url"] as? String } == [none, "http://none.example/b.mp4"])
        #expect(try shelf.names == (command == "rm" ? [] : ["/a.mp4"]))
    }

    @Test(arguments: Ownership.allCases) func whatIsNamedIsRemoved(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4", "/b.mp4", "/c.mp4"])
        _ = try shelf.say("pin", shelf.origin.url("/a.mp4"))
        let tried = try shelf.say("rm", shelf.origin.url("/a.mp4"), shelf.origin.url("/b.mp4"), "--dry-run")
        #expect(
            tried.lines.count == 4 && tried.lines[1...2].map { $0.split(separator: " ").last } == ["a.mp4", "b.mp4"])
        #expect(
            tried.lines[3].hasPrefix("would remove 2 resources; 2.") && tried.hasSuffix(" MB to be freed\n"), "\(tried)"
        )
        #expect(try shelf.names == ["/a.mp4", "/b.mp4", "/c.mp4"])
        // What is named twice counts once.
        let twice = try shelf.say("rm", shelf.origin.url("/a.mp4"), shelf.origin.url("/a*"), "--dry-run")
        #expect(twice.contains("would remove 1 resource; "), "\(twice)")
        let removed = try shelf.json("rm", shelf.origin.url("/a.mp4"), shelf.origin.url("/b.mp4"))
        #expect(
            removed["resources"] as? Int == 2 && removed["is_dry_run"] as? Bool == false
                && removed["bytes"] as? Int ?? 0 >= 2_000_000, "\(removed)")
        #expect(try shelf.names == ["/c.mp4"])
        #expect(try shelf.plays("/c.mp4"))
    }

    /// Standard input is no terminal here: nothing is asked.
    @Test func allIsRemovedButWhatIsPinned() throws {
        let shelf = try Shelf(whole: ["/a.mp4", "/b.mp4", "/c.mp4"])
        _ = try shelf.say("pin", shelf.origin.url("/b.mp4"))
        let tried = try shelf.say("rm", "--all", "--dry-run")
        #expect(
            tried.lines.last?.hasPrefix("would remove 2 resources; ") == true
                && tried.hasSuffix(" to be freed; 1 pinned left\n"), "\(tried)")
        #expect(tried.lines.count == 4 && !tried.contains("b.mp4"), "\(tried)")
        #expect(try shelf.names.count == 3)
        let removed = try shelf.json("rm", "--all")
        #expect(
            removed["resources"] as? Int == 2 && removed["pinned"] as? Int == 1
                && removed["bytes"] as? Int ?? 0 >= 2_000_000, "\(removed)")
        #expect(try shelf.names == ["/b.mp4"] && shelf.plays("/b.mp4"))
    }

    /// What a player has read, not what a download client has fetched.
    @Test func whatWasPlayedIsRemoved() throws {
        let shelf = try Shelf(whole: ["/played.mp4", "/pinned.mp4"])
        shelf.origin.serve("/fetched.mp4", shelf.film)
        _ = try shelf.say("prefetch", "--no-pin", shelf.origin.url("/fetched.mp4"))
        _ = try shelf.say("pin", shelf.origin.url("/pinned.mp4"))
        let tried = try shelf.say("rm", "--played", "--dry-run")
        #expect(tried.contains("played.mp4") && tried.hasSuffix("; 1 pinned left\n"), "\(tried)")
        #expect(try shelf.json("rm", "--played")["resources"] as? Int == 1)
        #expect(try shelf.names == ["/fetched.mp4", "/pinned.mp4"])
        let listed = try shelf.say("rm", "--played", "--include-pinned", "--dry-run")
        #expect(listed.contains("  pinned  pinned.mp4\n"), "\(listed)")
        #expect(try shelf.json("rm", "--played", "--include-pinned")["resources"] as? Int == 1)
        #expect(try shelf.names == ["/fetched.mp4"])
        for wrong in [
            ["rm", "--include-pinned"], ["rm", "--all", "--played"], ["rm", "--include-pinned", "http://a/b"],
        ] {
            #expect(try ReelcacheCommand.run(wrong + ["--cache-dir", shelf.cache.path]).exit == .exited(2))
        }
    }

    @Test func whatWasReadLatelyIsNotOld() throws {
        let shelf = try Shelf(whole: ["/a.mp4"])
        #expect(try shelf.say("rm", "--older-than", "30d") == "removed 0 resources; 0 bytes freed\n")
        #expect(try shelf.json("rm", "--older-than", "1h", "--dry-run")["resources"] as? Int == 0)
        #expect(try shelf.names == ["/a.mp4"])
    }

    /// It would go on as if nothing had come.
    @Test(arguments: Ownership.allCases) func whatIsBeingDownloadedStaysUntilThatIsCancelled(ownership: Ownership)
        throws
    {
        let shelf = try Shelf()
        let url = shelf.origin.url("/a.mp4")
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { $0.stallAfter = 524_288 }
        _ = try shelf.say("prefetch", "--detach", url)
        let news = try ReelcacheCommand.start(["downloads", "watch", "--json", "--cache-dir", shelf.cache.path])
        try news.waitForLine("the half of it") { $0.contains("\"bytes\":524288,") }
        if ownership == .alone { try shelf.close() }
        for arguments in [[url], [url, "--dry-run"], ["--filter", "a.mp4"], [shelf.origin.url("/*")]] {
            let line = try ReelcacheCommand.run(["rm"] + arguments + ["--cache-dir", shelf.cache.path]).failureLine
            #expect(
                line
                    == "reelcache: \(url) is being downloaded (download 1); cancel it first: reelcache downloads cancel 1"
            )
        }
        #expect(!(try shelf.say("rm", "--all", "--include-pinned", "--dry-run").contains("a.mp4")))
        _ = try shelf.say("downloads", "pause", "1")
        #expect(try shelf.run("rm", url).failureLine?.contains("is being downloaded") == true)
        #expect(try shelf.names == ["/a.mp4"])
        _ = try shelf.say("downloads", "cancel", "1")
        #expect(try shelf.names == [])
        #expect(try shelf.run("rm", url).failureLine?.contains("nothing of") == true)
    }

    @Test func withoutTheTokenNothingChangesAndItsPlaceIsNamed() throws {
        let shelf = try Shelf(whole: ["/a.mp4"])
        let token = shelf.cache.file("control-token")
        try FileManager.default.moveItem(atPath: token, toPath: token + ".away")
        for command in [
            ["rm", "--all"], ["rm", shelf.origin.url("/a.mp4")], ["pin", shelf.origin.url("/a.mp4")], ["verify"],
        ] {
            let line = try #require(try ReelcacheCommand.run(command + ["--cache-dir", shelf.cache.path]).failureLine)
            #expect(line.contains(token), "\(line)")
        }
        let other = Data(String(repeating: "0", count: 64).utf8)
        #expect(FileManager.default.createFile(atPath: token, contents: other, attributes: [.posixPermissions: 0o600]))
        let line = try #require(try shelf.run("rm", "--all").failureLine)
        #expect(line.contains(token), "\(line)")
        #expect(try shelf.names == ["/a.mp4"])
    }
}
