import Foundation
import TestSupport
import Testing

/// `reelcache export` and `import`.
@Suite struct ExportTests {
    private let directory: TemporaryDirectory
    private var file: String { directory.file("film.mp4") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func contents(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// The names in the directory.
    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }
    }

    @Test(arguments: Ownership.allCases) func aCompleteResourceBecomesAFile(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4"])
        #expect(
            try shelf.say("export", shelf.origin.url("/a.mp4"), "-o", file).hasPrefix("exported 1.00 MB to \(file) ("))
        #expect(shelf.film.difference(try contents(file), from: 0..<shelf.film.size) == nil)
        let json = try shelf.json("export", shelf.origin.url("/a.mp4"), "--output", directory.file("two.mp4"))
        #expect(
            json["bytes"] as? Int == 1_000_000
                && ["reflink", "copy_file_range", "copy"].contains(json["method"] as? String), "\(json)")
        #expect(try names == ["film.mp4", "two.mp4"])
        #expect(try shelf.plays("/a.mp4"))
    }

    /// An origin that encodes although nothing was asked for, as a file and as a download.
    @Test(arguments: ["gzip", "deflate"])
    func whatWasSentInACodingIsDecoded(coding: String) throws {
        let shelf = try Shelf(), text = Array("ID3 sound".utf8), url = shelf.origin.url("/f.mp3")
        shelf.origin.serve("/f.mp3", bytes: coding == "gzip" ? Coded.gzip(text) : Coded.deflate(text))
        shelf.origin.script("/f.mp3") { $0.headers = [("Content-Encoding", coding)] }
        _ = try shelf.say("prefetch", url, "-o", directory.path, "--allow", "127.0.0.1")
        #expect(try contents(directory.file("f.mp3")) == text)
        #expect(try shelf.say("export", url, "-o", file).hasPrefix("exported \(text.count) bytes to \(file) ("))
        #expect(try contents(file) == text && names == ["f.mp3", "film.mp4"])
    }

    @Test func segmentsThatWereSentInACodingAreDecoded() throws {
        let shelf = try Shelf(), film = directory.file("film.ts")
        let segments: [[UInt8]] = [1, 2].map { number in
            (0..<300).flatMap { _ in [0x47] + [UInt8](repeating: number, count: 187) }
        }
        let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n"
        shelf.origin.serve("/film.m3u8", bytes: Array(list.utf8), contentType: "application/vnd.apple.mpegurl")
        for (number, segment) in zip(1..., segments) {
            shelf.origin.serve("/\(number).ts", bytes: Coded.gzip(segment))
            shelf.origin.script("/\(number).ts") { $0.headers = [("Content-Encoding", "gzip")] }
        }
        let url = shelf.origin.url("/film.m3u8")
        _ = try shelf.say("prefetch", url, "--allow", "127.0.0.1")
        _ = try shelf.say("export", url, "-o", film)
        #expect(try contents(film) == segments.flatMap(\.self) && names == ["film.ts"])
    }

    @Test(arguments: ["br", "gzip"])
    func aCodingThatCannotBeDecodedIsTold(coding: String) throws {
        let shelf = try Shelf(), url = shelf.origin.url("/f.mp3")
        shelf.origin.serve("/f.mp3", bytes: Array("no such thing".utf8))
        shelf.origin.script("/f.mp3") { $0.headers = [("Content-Encoding", coding)] }
        let placed = try shelf.run("prefetch", url, "-o", directory.path, "--allow", "127.0.0.1")
        #expect(placed.exit != .exited(0) && "\(placed)".contains(" \(coding)"), "\(placed)")
        let line = try #require(try shelf.run("export", url, "-o", file).failureLine)
        #expect(line.contains(url) && line.contains(" \(coding)"), "\(line)")
        #expect(try names == [])
    }

    @Test func aFileThatIsThereIsReplacedOnlyByForce() throws {
        let shelf = try Shelf(whole: ["/a.mp4"])
        try Data("mine".utf8).write(to: URL(fileURLWithPath: file))
        let line = try #require(try shelf.run("export", shelf.origin.url("/a.mp4"), "-o", file).failureLine)
        #expect(line.contains(file) && line.contains("--force"), "\(line)")
        #expect(try contents(file) == Array("mine".utf8))
        _ = try shelf.say("export", shelf.origin.url("/a.mp4"), "-o", file, "--force")
        #expect(shelf.film.difference(try contents(file), from: 0..<shelf.film.size) == nil)
        #expect(try names == ["film.mp4"])
    }

    @Test func aPlaceThatTakesNoFileIsNamed() throws {
        let shelf = try Shelf(whole: ["/a.mp4"])
        for (place, force) in [
            (directory.path, false), (directory.path, true), (directory.file("none/film.mp4"), false),
            ("/proc/film.mp4", false),
        ] {
            let line = try #require(
                try shelf.run("export", shelf.origin.url("/a.mp4"), "-o", place, force ? "--force" : "--json")
                    .failureLine(isJSON: !force))
            #expect(line.contains(place) || line.contains((place as NSString).deletingLastPathComponent), "\(line)")
        }
        #expect(try names == [])
    }

    @Test func whatIsMissingIsTold() throws {
        let shelf = try Shelf(parts: ["/a.mp4"])
        let line = try #require(try shelf.run("export", shelf.origin.url("/a.mp4"), "-o", file).failureLine)
        #expect(
            line.contains("lacks 934 kB in 2 ranges") && line.contains("0-131071, 196608-999999")
                && line.contains("--fetch"), "\(line)")
        #expect(try names == [] && shelf.origin.requestCount("/a.mp4") == 1)
        let none = try #require(try shelf.run("export", "http://none.example/a", "-o", file).failureLine)
        #expect(none.contains("nothing of http://none.example/a is cached"), "\(none)")
        #expect(try names == [])
    }

    @Test(arguments: Ownership.allCases) func whatIsMissingIsFetched(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, parts: ["/a.mp4"])
        _ = try shelf.say("export", shelf.origin.url("/a.mp4"), "-o", file, "--fetch", "--allow", "127.0.0.1")
        #expect(shelf.film.difference(try contents(file), from: 0..<shelf.film.size) == nil)
        #expect(shelf.origin.bytesSent("/a.mp4") == shelf.film.size)
        #expect(try shelf.plays("/a.mp4"))
    }

    @Test func whatCannotBeFetchedIsTold() throws {
        let shelf = try Shelf(parts: ["/a.mp4"])
        shelf.origin.script("/gone.mp4") { ($0.status, $0.body) = (404, Array("gone\n".utf8)) }
        shelf.origin.serve("/kept.mp4", shelf.film)
        shelf.origin.script("/kept.mp4") { $0.headers = [("Cache-Control", "no-store")] }
        let gone = try #require(
            try shelf.run("export", shelf.origin.url("/gone.mp4"), "-o", file, "--fetch", "--allow", "127.0.0.1")
                .failureLine)
        #expect(gone.contains("404"), "\(gone)")
        let kept = try #require(
            try shelf.run("export", shelf.origin.url("/kept.mp4"), "-o", file, "--fetch", "--allow", "127.0.0.1")
                .failureLine)
        #expect(kept.contains("/kept.mp4") && kept.contains("its origin forbids storing it"), "\(kept)")
        #expect(try names == [])
    }

    @Test func anOriginThatBreaksOffIsTold() throws {
        let shelf = try Shelf()
        // Without a validator nothing can be asked for again.
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { ($0.cutAfter, $0.cutTimes, $0.noValidators) = (300_000, 100, true) }
        let line = try #require(
            try shelf.run("export", shelf.origin.url("/a.mp4"), "-o", file, "--fetch", "--allow", "127.0.0.1")
                .failureLine)
        #expect(line.contains("\(shelf.origin.url("/a.mp4")) cannot be fetched completely: "), "\(line)")
        #expect(try names == [])
    }

    /// Nobody has a proxy to start.
    @Test func howAPrivateOriginIsAllowedIsTold() throws {
        let shelf = try Shelf(.alone)
        let line = try #require(try shelf.run("export", shelf.origin.url("/a.mp4"), "-o", file, "--fetch").failureLine)
        #expect(line.contains("use --allow 127.0.0.1"), "\(line)")
    }

    /// Such a proxy refuses the form that names an origin.
    @Test(arguments: ["/vod/a.mp4", "/other/a.mp4"]) func whereOnlyMountsAreServedItIsFetchedBelowOne(path: String)
        throws
    {
        let (origin, film, cache) = (try ScriptedOrigin(), Media(seed: 93, size: 500_000), directory.file("cache"))
        origin.serve(path, film)
        let settings = directory.file("r.yaml")
        try Data("mounts: {/tv/: \(origin.url("/vod/"))}\nany_origin: false\n".utf8).write(
            to: URL(fileURLWithPath: settings))
        let proxy = try ProxyProcess(cacheDirectory: cache, arguments: ["--config", settings])
        let outcome = try ReelcacheCommand.run([
            "export", origin.url(path), "-o", file, "--fetch", "--cache-dir", cache, "--config", settings,
        ])
        if path == "/vod/a.mp4" {
            #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
            #expect(film.difference(try contents(file), from: 0..<film.size) == nil)
        } else {
            let line = try #require(outcome.failureLine)
            #expect(
                line.contains("\(origin.url(path)) is not below a mounted URL") && line.contains("any_origin"),
                "\(line)")
            #expect(origin.requestCount(path) == 0)
        }
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// What only its flags said, nobody else knows.
    @Test func aProxyWhoseMountsAreUnknownAsksForThem() throws {
        let (origin, cache) = (try ScriptedOrigin(), directory.file("cache"))
        let proxy = try ProxyProcess(
            cacheDirectory: cache, arguments: ["--mount", "/tv/=\(origin.url("/vod/"))", "--no-any-origin"])
        let outcome = try ReelcacheCommand.run([
            "export", origin.url("/vod/a.mp4"), "-o", file, "--fetch", "--cache-dir", cache,
        ])
        let line = try #require(outcome.failureLine)
        #expect(
            line.contains(
                "the proxy serves mounts only: put its mounts and any_origin into the configuration file"),
            "\(line)")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func aPlaceThatTakesNoFileIsNamedBeforeAnythingIsFetched() throws {
        let shelf = try Shelf(parts: ["/a.mp4"])
        let place = directory.file("new/")
        let line = try #require(try shelf.run("export", shelf.origin.url("/a.mp4"), "-o", place, "--fetch").failureLine)
        #expect(line.contains(place) && shelf.origin.requestCount("/a.mp4") == 1, "\(line)")
    }

    @Test(arguments: [["--allow", "127.0.0.1"], ["--fetch", "--allow", "10.0.0.0/99"], ["-o", ""]])
    func flagsThatCannotWorkAreWrongUsage(flags: [String]) throws {
        let outcome = try ReelcacheCommand.run(
            ["export", "http://a/b", "-o", file] + flags + ["--cache-dir", directory.file("none")])
        #expect(
            outcome.exit == .exited(2) && outcome.stderr.contains(flags.contains("--allow") ? "--allow" : "-o FILE"),
            "\(outcome)")
    }

    /// A proxy knows the token that was there when it started.
    @Test func aTokenThatWasChangedAsksForARestart() throws {
        let shelf = try Shelf(whole: ["/a.mp4"])
        let token = shelf.cache.file("control-token")
        let process = try #require(shelf.proxy).process.pid
        for text in [nil, "nonsense\n", String(repeating: "ab", count: 32) + "\n"] {
            try FileManager.default.removeItem(atPath: token)
            defer { _ = FileManager.default.createFile(atPath: token, contents: nil) }
            if let text {
                #expect(
                    FileManager.default.createFile(
                        atPath: token, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]))
            }
            let line = try #require(try shelf.run("export", shelf.origin.url("/a.mp4"), "-o", file).failureLine)
            #expect(line.contains(token) && line.contains("restart the proxy (process \(process))"), "\(line)")
        }
    }

    @Test(arguments: Ownership.allCases, [SIGINT, SIGTERM]) func anInterruptLeavesNoFile(
        ownership: Ownership, signal: Int32
    ) throws {
        let shelf = try Shelf(ownership)
        shelf.origin.serve("/a.mp4", shelf.film)
        shelf.origin.script("/a.mp4") { $0.stallAfter = 300_000 }
        let export = try ReelcacheCommand.start(
            [
                "export", shelf.origin.url("/a.mp4"), "-o", file, "--fetch", "--allow", "127.0.0.1", "--cache-dir",
                shelf.cache.path,
            ])
        try shelf.origin.waitForRequests("/a.mp4", count: 1)
        export.signal(signal)
        #expect(try export.waitForExit() == .signalled(signal))
        #expect(export.stderr == "reelcache: interrupted\n" && export.stdout == "")
        #expect(try names == [])
        shelf.origin.release("/a.mp4")
        #expect(try shelf.run("ls").exit == .exited(0))
    }

    // MARK: Import

    private func write(_ media: Media, _ name: String) throws -> String {
        let path = directory.file(name)
        try Data(media.allBytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test(arguments: Ownership.allCases) func anImportedFilePlaysWithoutItsOrigin(ownership: Ownership) throws {
        let shelf = try Shelf(ownership)
        let path = try write(shelf.film, "film.mkv")
        let report = try shelf.json("import", path, "--as", shelf.origin.url("/a.mkv"))
        #expect(
            report["is_complete"] as? Bool == true && report["length"] as? Int == 1_000_000
                && report["type"] as? String == "video/x-matroska", "\(report)")
        #expect(
            try shelf.say("import", path, "--as", shelf.origin.url("/b"), "--type", "audio/x-own")
                == "imported \(path), 1.00 MB, as \(shelf.origin.url("/b"))\n")
        #expect(try shelf.say("show", shelf.origin.url("/b")).contains("type        audio/x-own\n"))
        #expect(try shelf.plays("/a.mkv") && shelf.plays("/b"))
    }

    /// A link is dead, so a person imports a copy, and then tidies the list.
    @Test func anImportedFileStaysWhenTheDownloadThatFailedIsForgotten() throws {
        let shelf = try Shelf(), url = shelf.origin.url("/f.mkv")
        shelf.origin.script("/f.mkv") { $0.status = 403 }
        #expect(try shelf.run("prefetch", url, "--allow", "127.0.0.1").exit == .exited(1))
        _ = try shelf.say("import", try write(shelf.film, "film.mkv"), "--as", url)
        _ = try shelf.say("downloads", "clear")
        #expect(try shelf.say("show", url).contains("1.00 MB (1,000,000 bytes), complete"))
    }

    @Test func anImportMakesTheCacheItNeeds() throws {
        let film = Media(seed: 91, size: 300_000)
        let (path, cache) = (try write(film, "film.mp4"), directory.file("new/cache"))
        let outcome = try ReelcacheCommand.run([
            "import", path, "--as", "http://a.example/film.mp4", "--cache-dir", cache,
        ])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        #expect(try ReelcacheCommand.run(["ls", "--cache-dir", cache]).lines.last == "1 of 1 resource; 300 kB")
    }

    @Test func whatIsThereIsReplacedOnlyWhereThatIsAskedFor() throws {
        let shelf = try Shelf(whole: ["/a.mp4"])
        let other = try write(Media(seed: 92, size: 300_000), "other.mp4")
        let line = try #require(try shelf.run("import", other, "--as", shelf.origin.url("/a.mp4")).failureLine)
        #expect(line.contains("is cached, at least in part") && line.contains("--replace"), "\(line)")
        #expect(try shelf.say("show", shelf.origin.url("/a.mp4")).contains("1.00 MB (1,000,000 bytes), complete"))
        _ = try shelf.say("import", other, "--as", shelf.origin.url("/a.mp4"), "--replace")
        #expect(try shelf.say("show", shelf.origin.url("/a.mp4")).contains("300 kB (300,000 bytes), complete"))
        #expect(try shelf.names == ["/a.mp4"])
    }

    @Test func aFileThatCannotBeImportedIsNamed() throws {
        let shelf = try Shelf()
        #expect(FileManager.default.createFile(atPath: directory.file("empty"), contents: nil))
        for path in [directory.path, directory.file("none"), directory.file("empty"), "/dev/null"] {
            let line = try #require(try shelf.run("import", path, "--as", "http://a.example/b").failureLine)
            #expect(line.contains(path), "\(line)")
        }
        let line = try #require(try shelf.run("import", "/proc/self/exe", "--as", "nonsense").failureLine)
        #expect(line.contains("nonsense") || line.contains("regular"), "\(line)")
        #expect(try shelf.names == [])
    }
}
