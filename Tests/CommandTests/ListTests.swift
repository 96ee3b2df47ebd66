import Foundation
import TestSupport
import Testing

/// `reelcache ls` and `reelcache show`.
@Suite struct ListTests {
    @Test(arguments: Ownership.allCases) func whatIsCachedIsATable(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4"], parts: ["/b.mp4"])
        let lines = try shelf.say("ls", "--sort", "name").lines
        #expect(lines.count == 4)
        #expect(lines[0].split(separator: " ") == ["SIZE", "OF", "HITS", "LAST", "READ", "FLAGS", "URL"])
        #expect(
            lines[1].hasPrefix("  1.00 MB  complete ") && lines[1].hasSuffix("  \(shelf.origin.url("/a.mp4"))"),
            "\(lines)")
        #expect(
            lines[2].hasPrefix("  65.5 kB  1.00 MB  ") && lines[2].hasSuffix("  \(shelf.origin.url("/b.mp4"))"),
            "\(lines)")
        let column = lines[0].range(of: "URL")?.lowerBound
        for line in lines[1...2] { #expect(line.range(of: "http://")?.lowerBound == column) }
        #expect(lines[3] == "2 of 2 resources; 1.07 MB")
    }

    @Test func theOrderTheFilterAndTheLimitHold() throws {
        let shelf = try Shelf(whole: ["/a.mp4", "/b.mp3"], parts: ["/c.mp4"])
        let listing = try shelf.json("ls", "--sort", "size", "--filter", "MP4", "--limit", "1")
        #expect(listing["total"] as? Int == 2)
        let resources = try #require(listing["resources"] as? [[String: Any]])
        #expect(resources.map { $0["url"] as? String } == [shelf.origin.url("/a.mp4")])
        #expect(resources.first?["is_complete"] as? Bool == true && resources.first?["length"] as? Int == 1_000_000)
        #expect(try shelf.say("ls", "--filter", "mp4", "--limit", "1").lines.last == "1 of 2 resources; 65.5 kB")
        #expect(try shelf.say("ls", "--filter", "ogg") == "0 of 0 resources; 0 bytes\n")
    }

    @Test func manyPagesAreOneList() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/film", bytes: [1, 2, 3])
        let proxy = try #require(shelf.proxy)
        let client = try RawClient(port: proxy.port)
        for number in 0..<1005 {
            #expect(try client.get(ProxyProcess.target(shelf.origin.url("/film?\(number)"))).status == 200)
        }
        let resources = try #require(shelf.json("ls", "--sort", "name")["resources"] as? [[String: Any]])
        #expect(Set(resources.compactMap { $0["url"] as? String }).count == 1005)
        #expect(try shelf.say("ls").lines.last == "1,005 of 1,005 resources; 3.02 kB")
        #expect(try shelf.say("ls", "--limit", "1001").lines.last == "1,001 of 1,005 resources; 3.00 kB")
    }

    /// A proxy, played by an origin, whose second page is the first again: so it is when something was read meanwhile.
    @Test func whatMovesWhilePagesAreReadIsListedOnce() throws {
        let shelf = try Shelf(.alone)
        let rows = (0..<1000).map {
            "{\"url\":\"http://a/\($0)\",\"length\":1,\"cached\":1,\"is_complete\":true,\"is_pinned\":false,\"hits\":0,\"last_access\":0,\"stored_at\":0}"
        }
        shelf.origin.serve(
            "/api/v1/resources", bytes: Array("{\"total\":1001,\"resources\":[\(rows.joined(separator: ","))]}".utf8))
        let owner = try shelf.pretendOwner(url: "http://127.0.0.1:\(shelf.origin.port)")
        defer { try? owner.close() }
        #expect(try #require(shelf.json("ls")["resources"] as? [[String: Any]]).count == 1000)
        #expect(shelf.origin.requestCount("/api/v1/resources") == 2)
    }

    /// What it answers has another form, also as an event.
    @Test(arguments: [
        ["ls"], ["show", "http://a/b"], ["downloads"], ["downloads", "watch"], ["feeds"], ["history"], ["stats"],
    ])
    func aProxyOfAnotherVersionIsToldInOneLine(command: [String]) throws {
        let shelf = try Shelf(.alone)
        for path in ["resources", "downloads", "downloads/history", "feeds"].map({ "/api/v1/" + $0 }) + ["/stats"] {
            shelf.origin.serve(path, bytes: Array("{\"none\":[1]}".utf8))
        }
        shelf.origin.serve("/healthz", bytes: Array("ok\n".utf8))
        shelf.origin.serve("/api/v1/downloads/events", bytes: Array("event: download\ndata: {\"none\":1}\n\n".utf8))
        let owner = try shelf.pretendOwner(url: "http://127.0.0.1:\(shelf.origin.port)")
        defer { try? owner.close() }
        let outcome = try ReelcacheCommand.run(command + ["--cache-dir", shelf.cache.path])
        let line = try #require(outcome.failureLine, "\(outcome)")
        #expect(line.contains("the proxy at ") && line.hasSuffix("it may be another version"), "\(line)")
    }

    @Test func aFilterIsWrittenAsPeopleReadIt() throws {
        let shelf = try Shelf(whole: ["/Dvo%C5%99%C3%A1k%20a.mp4", "/b.mp4"])
        #expect(try shelf.say("ls", "--filter", "Dvořák A").lines.last == "1 of 1 resource; 1.00 MB")
    }

    @Test func aURLThatIsTooLongForTheProxyIsToldSo() throws {
        let shelf = try Shelf()
        let line = try #require(try shelf.run("show", "http://a/" + String(repeating: "a", count: 60_000)).failureLine)
        #expect(
            line
                == "reelcache: the request is too long: the URL is longer than 49152 bytes: send a shorter one"
        )
    }

    @Test func oneResourceIsShownWithItsCoverage() throws {
        let shelf = try Shelf(parts: ["/b.mp4"])
        let shown = try shelf.say(
            "show", shelf.origin.url("/b.mp4"), environment: ["LC_ALL": "C", "LC_CTYPE": nil, "LANG": nil])
        for line in [
            "url         \(shelf.origin.url("/b.mp4"))", "size        65.5 kB of 1.00 MB (1,000,000 bytes), 6 %",
            "type        video/mp4", "etag        \"v1\"",
            "hits        0", "pinned      no",
            "coverage    ........+###+...................................................",
            "missing     934 kB: 0-131071, 196608-999999",
        ] {
            #expect(shown.lines.contains(line), "\(line) is not in:\n\(shown)")
        }
        #expect(
            shown.lines.contains {
                $0.hasPrefix("freshness   fresh for ") && $0.hasSuffix(" min more (the origin gave no lifetime)")
            })
        let blocks = try shelf.say("show", shelf.origin.url("/b.mp4"), environment: ["LC_ALL": "C.UTF-8"])
        #expect(blocks.contains("coverage    ░░░░░░░░▒███▒░"), "\(blocks)")
    }

    @Test(arguments: Ownership.allCases) func theURLOfAPlayerIsUnderstood(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4"])
        let url = "http://localhost:7335" + ProxyProcess.target(shelf.origin.url("/a.mp4"))
        let detail = try shelf.json("show", url)
        let resource = try #require(detail["resource"] as? [String: Any])
        #expect(resource["url"] as? String == shelf.origin.url("/a.mp4") && resource["cached"] as? Int == 1_000_000)
        #expect(
            (detail["missing"] as? [Any])?.isEmpty == true
                && detail["final_url"] as? String == shelf.origin.url("/a.mp4"))
    }

    @Test func howFreshItIsIsTold() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { $0.headers = [("Cache-Control", "max-age=93000")] }
        #expect(try #require(shelf.proxy).get(shelf.origin.url("/a.mp4")).status == 200)
        #expect(try shelf.say("show", shelf.origin.url("/a.mp4")).contains("freshness   fresh for 25 h more\n"))
    }

    @Test func whatIsNotCachedIsTold() throws {
        let shelf = try Shelf()
        for arguments in [["show"], ["show", "--json"]] {
            let line = try #require(
                try ReelcacheCommand.run(arguments + ["http://a.example/b.mp4", "--cache-dir", shelf.cache.path])
                    .failureLine(isJSON: arguments.contains("--json")))
            #expect(line.contains("nothing of http://a.example/b.mp4 is cached"), "\(line)")
        }
        let line = try #require(try shelf.run("show", "b.mp4").failureLine)
        #expect(line.contains("b.mp4") && line.contains("write https:// before it"), "\(line)")
    }

    @Test(arguments: [
        ["ls", "--sort", "age"], ["ls", "--limit", "0"], ["ls", "--limit", "-1"], ["ls", "--limit", "many"],
        ["ls", "extra"], ["show"], ["show", "a", "b"], ["pin"],
        ["rm"], ["rm", "--all", "--older-than", "1d"], ["rm", "--all", "http://a/b"], ["rm", "--older-than", "30"],
        ["rm", "--older-than", "-1d"],
        ["export", "http://a/b"], ["export", "-o", "x"], ["export", "http://a/b", "-o", ""],
        ["import", "--as", "http://a/b"],
        ["import", "x", "--as", "http://a/b", "--type", "film"], ["verify", "x"],
    ])
    func wrongUsageIs2(arguments: [String]) throws {
        let shelf = try TemporaryDirectory()
        let outcome = try ReelcacheCommand.run(arguments + ["--cache-dir", shelf.file("cache")])
        #expect(outcome.exit == .exited(2) && outcome.stdout == "" && outcome.stderr.hasPrefix("Error: "), "\(outcome)")
        #expect(!FileManager.default.fileExists(atPath: shelf.file("cache")))
    }
}
