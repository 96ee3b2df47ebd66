import Foundation
import TestSupport
import Testing

/// Segmented films as commands show, export and remove them.
@Suite struct PresentationTests {
    private let directory: TemporaryDirectory
    private let segments = (1...3).map { Media(seed: UInt64($0), size: 10_000 + Int64($0)) }

    init() throws { directory = try TemporaryDirectory() }

    /// A cache with a playlist of three segments.
    /// - Parameter played: how many of them are cached.
    private func shelf(played: Int = 3, map: String? = nil) throws -> Shelf {
        let shelf = try Shelf()
        let lines =
            ["#EXTM3U", "#EXT-X-TARGETDURATION:2"] + (map.map { ["#EXT-X-MAP:URI=\"\($0)\""] } ?? [])
            + (1...3).flatMap { ["#EXTINF:2,", "\($0).ts"] } + ["#EXT-X-ENDLIST", ""]
        shelf.origin.serve(
            "/film.m3u8", bytes: Array(lines.joined(separator: "\n").utf8), contentType: "application/vnd.apple.mpegurl"
        )
        // What its origin lacks is not fetched ahead either.
        for (number, media) in segments.prefix(played).enumerated() {
            shelf.origin.serve("/\(number + 1).ts", media, contentType: "video/mp2t")
        }
        let names = ["/film.m3u8"] + (map.map { ["/" + $0] } ?? []) + (1...3).prefix(played).map { "/\($0).ts" }
        if let map { shelf.origin.serve("/" + map, bytes: [1, 2, 3, 4], contentType: "video/mp4") }
        for name in names { #expect(try #require(shelf.proxy).get(shelf.origin.url(name)).status == 200) }
        return shelf
    }

    private func contents(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private var film: [UInt8] { segments.flatMap { $0.bytes(0..<$0.size) } }

    @Test func aTransportStreamIsJoinedByteForByte() throws {
        let shelf = try shelf(), file = directory.file("film.ts")
        #expect(try shelf.say("export", shelf.origin.url("/film.m3u8"), "-o", file).contains("a copy"))
        #expect(try contents(file) == film)
        // The playlist itself, where a name for one says so.
        let list = directory.file("film.m3u8")
        _ = try shelf.say("export", shelf.origin.url("/film.m3u8"), "-o", list)
        #expect(try contents(list).starts(with: "#EXTM3U".utf8))
    }

    @Test func anInitializationSectionComesFirst() throws {
        let shelf = try shelf(map: "init.mp4"), file = directory.file("film.mp4")
        _ = try shelf.say("export", shelf.origin.url("/film.m3u8"), "-o", file)
        #expect(try contents(file) == [1, 2, 3, 4] + film)
    }

    @Test func whatLacksSegmentsIsRefused() throws {
        let shelf = try shelf(played: 2), file = directory.file("film.ts")
        let line = try #require(try shelf.run("export", shelf.origin.url("/film.m3u8"), "-o", file).failureLine)
        #expect(line.contains("1 of 3 segments are missing") && line.contains("reelcache prefetch"), "\(line)")
        #expect(!FileManager.default.fileExists(atPath: file))
        let shown = try shelf.say("show", shelf.origin.url("/film.m3u8"), "--segments")
        #expect(shown.contains("2 of 3 segments"), "\(shown)")
        #expect(shown.contains("1 cached") && shown.contains("2 missing"), "\(shown)")
        let presentation = try #require(
            (try shelf.json("show", shelf.origin.url("/film.m3u8"))["resource"] as? [String: Any])?["presentation"]
                as? [String: Any])
        #expect(presentation["segments"] as? Int == 3 && presentation["cached_segments"] as? Int == 2)
    }

    @Test(arguments: Ownership.allCases) func whatLacksSegmentsIsFetched(ownership: Ownership) throws {
        let shelf = try shelf(played: 0), file = directory.file("film.ts"), url = shelf.origin.url("/film.m3u8")
        for (number, media) in segments.enumerated() {
            shelf.origin.serve("/\(number + 1).ts", media, contentType: "video/mp2t")
        }
        if ownership == .alone { try shelf.close() }
        let outcome = try shelf.run("export", url, "-o", file, "--fetch", "--allow", "127.0.0.1", "--json")
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        #expect(try outcome.members["bytes"] as? Int == film.count && contents(file) == film)
        // It was fetched to be copied, not to stay.
        let shown = try shelf.json("show", url)["resource"] as? [String: Any]
        #expect(shown?["is_pinned"] as? Bool == false, "\(shown ?? [:])")
        // What is chosen by its name is not.
        let refused = try shelf.run("export", url, "-o", file + "2", "--fetch", "--rendition", "none")
        #expect(try #require(refused.failureLine).contains("has no rendition 'none'"), "\(refused)")
    }

    @Test func anotherContainerNeedsFFmpeg() throws {
        let shelf = try shelf(), file = directory.file("film.mkv")
        let outcome = try shelf.run(
            "export", shelf.origin.url("/film.m3u8"), "-o", file, environment: ["PATH": "/nowhere"])
        let line = try #require(outcome.failureLine)
        #expect(line.contains("needs ffmpeg, which is not installed"), "\(line)")
        // With it, what is no film is refused in its words.
        let refused = try #require(try shelf.run("export", shelf.origin.url("/film.m3u8"), "-o", file).failureLine)
        #expect(refused.contains("ffmpeg cannot") || refused.contains("needs ffmpeg"), "\(refused)")
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    /// Whatever its segments are, ffmpeg takes them for what they were joined as, and opens nothing that they name.
    @Test func whatFFmpegReadsIsNamedToIt() throws {
        let shelf = try shelf(), file = directory.file("film.mkv"), tool = try fakeFFmpeg()
        let outcome = try shelf.run(
            "export", shelf.origin.url("/film.m3u8"), "-o", file, "--json",
            environment: ["PATH": "\(directory.path):/usr/bin:/bin"])
        #expect(try outcome.members["method"] as? String == "ffmpeg", "\(outcome)")
        #expect(try contents(file) == Array("made\n".utf8))
        let said = String(decoding: try contents(tool + ".said"), as: UTF8.self)
        #expect(said.contains("-nostdin") && said.contains("-protocol_whitelist file -f mpegts -i file:"), "\(said)")
        #expect(said.contains("-map 0:v? -map 0:a? -map 0:s?"), "\(said)")
        // What was joined for it is gone.
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        #expect(names == ["ffmpeg", "ffmpeg.said", "film.mkv"])
    }

    /// In the place of the real one: notes what it was asked for.
    /// - Returns: its path.
    private func fakeFFmpeg() throws -> String {
        try directory.makeProgram(
            "ffmpeg",
            """
            case "$*" in *"-h full") exit ;; esac
            echo "$@" > "$0.said"
            for last; do :; done
            echo made > "${last#file:}"
            """)
    }

    /// Runs a program of ffmpeg's.
    private func run(_ program: String, _ arguments: String) throws -> String {
        let made = try ChildProcess.run("/usr/bin/" + program, arguments.split(separator: " ").map(String.init))
        try #require(made.exit == .exited(0), "\(made.stderr)")
        return made.stdout
    }

    /// The sound of a recording may begin later than its picture, and segments may have any names.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/ffprobe"), "ffmpeg is not installed"))
    func whatBeginsApartStaysApart() throws {
        let shelf = try Shelf(), made = directory.path, output = directory.file("film.mkv")
        let list = "-f hls -hls_time 2 -hls_playlist_type vod"
        let key = directory.file("key")
        try Data(repeating: 7, count: 16).write(to: URL(fileURLWithPath: key))
        try "v.key\n\(key)\n".write(toFile: directory.file("keys"), atomically: true, encoding: .utf8)
        _ = try run(
            "ffmpeg",
            "-v error -f lavfi -i testsrc=size=64x36:rate=10 -t 6 -c:v mpeg2video \(list) "
                + "-hls_key_info_file \(made)/keys -hls_segment_filename \(made)/v%d.seg \(made)/v.m3u8")
        _ = try run(
            "ffmpeg",
            "-v error -f lavfi -i sine -t 6 -c:a aac -output_ts_offset 3 \(list) "
                + "-hls_segment_filename \(made)/a%d.seg \(made)/a.m3u8")
        let master = """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,AUTOSELECT=YES,URI="a.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=100000,AUDIO="a"
            v.m3u8

            """
        shelf.origin.serve("/m.m3u8", bytes: Array(master.utf8), contentType: "application/vnd.apple.mpegurl")
        shelf.origin.serve("/v.key", bytes: [UInt8](repeating: 7, count: 16))
        for name in try FileManager.default.contentsOfDirectory(atPath: made)
        where name.hasSuffix(".m3u8") || name.hasSuffix(".seg") {
            let type = name.hasSuffix(".seg") ? "video/mp2t" : "application/vnd.apple.mpegurl"
            shelf.origin.serve("/" + name, bytes: try contents("\(made)/\(name)"), contentType: type)
        }
        _ = try shelf.say("prefetch", shelf.origin.url("/m.m3u8"), "--allow", "127.0.0.1")
        _ = try shelf.say("export", shelf.origin.url("/m.m3u8"), "-o", output)
        let starts = try run(
            "ffprobe", "-v error -show_entries stream=codec_type,start_time -of csv=p=0 \(output)"
        ).lines.map { $0.split(separator: ",") }
        let times = Dictionary(uniqueKeysWithValues: starts.map { ($0[0], Double($0[1]) ?? .nan) })
        let (picture, sound) = (try #require(times["video"]), try #require(times["audio"]))
        #expect(abs(sound - picture - 3) < 0.3, "\(times)")
    }

    /// Asks for a playlist alone, and for its film.
    /// - Returns: why that is refused.
    private func refusal(of text: String, _ name: String, type: String, parts: [String] = []) throws -> String {
        let shelf = try Shelf(), file = directory.file("film.mp4")
        shelf.origin.serve(name, bytes: Array(text.utf8), contentType: type)
        for part in parts { shelf.origin.serve(part, bytes: [1, 2, 3, 4], contentType: "video/mp4") }
        for path in [name] + parts {
            #expect(try #require(shelf.proxy).get(shelf.origin.url(path)).status == 200)
        }
        let line = try #require(try shelf.run("export", shelf.origin.url(name), "-o", file).failureLine)
        #expect(!FileManager.default.fileExists(atPath: file))
        return line
    }

    /// Which of its segments each belongs to is the playlist's to say: ffmpeg plays it through a proxy.
    @Test(arguments: Ownership.allCases) func whereInitializationSectionsChangeItIsPlayed(ownership: Ownership) throws {
        let parts = ["a", "b"].flatMap { ["#EXT-X-MAP:URI=\"\($0).mp4\"", "#EXTINF:2,", "\($0).m4s"] }
        let lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:2"] + parts + ["#EXT-X-ENDLIST", ""]
        let shelf = try Shelf(), file = directory.file("film.mp4"), tool = try fakeFFmpeg()
        shelf.origin.serve(
            "/film.m3u8", bytes: Array(lines.joined(separator: "\n").utf8),
            contentType: "application/vnd.apple.mpegurl")
        let names = ["a.mp4", "a.m4s", "b.mp4", "b.m4s"]
        for name in names { shelf.origin.serve("/" + name, bytes: [1, 2, 3, 4], contentType: "video/mp4") }
        for name in ["film.m3u8"] + names {
            #expect(try #require(shelf.proxy).get(shelf.origin.url("/" + name)).status == 200)
        }
        if ownership == .alone { try shelf.close() }
        let outcome = try shelf.run(
            "export", shelf.origin.url("/film.m3u8"), "-o", file,
            environment: ["PATH": "\(directory.path):/usr/bin:/bin"])
        #expect(try contents(file) == Array("made\n".utf8), "\(outcome)")
        let said = String(decoding: try contents(tool + ".said"), as: UTF8.self)
        #expect(said.contains("-protocol_whitelist http,tcp,crypto,data -allowed_extensions ALL -f hls -i http://127"))
        #expect(said.contains(ProxyProcess.target(shelf.origin.url("/film.m3u8"))), "\(said)")
    }

    /// As those of an advertisement, by which ffmpeg would not read what follows it.
    @Test func aFilmWhoseFormatChangesIsRefused() throws {
        let parts = ["a", "b"].flatMap { ["#EXT-X-MAP:URI=\"\($0).mp4\"", "#EXTINF:2,", "\($0).m4s"] }
        let lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:2"] + parts + ["#EXT-X-ENDLIST", ""]
        let shelf = try Shelf()
        shelf.origin.serve(
            "/film.m3u8", bytes: Array(lines.joined(separator: "\n").utf8),
            contentType: "application/vnd.apple.mpegurl")
        for (name, byte) in [("a", UInt8(1)), ("b", 2)] {
            let section: [UInt8] = [9, byte, 9, 0, 0, 0, 9] + Array("stsd".utf8) + [byte, 8, 8]
            shelf.origin.serve("/\(name).mp4", bytes: section, contentType: "video/mp4")
            shelf.origin.serve("/\(name).m4s", bytes: [1, 2, 3, 4], contentType: "video/mp4")
        }
        for name in ["film.m3u8", "a.mp4", "a.m4s", "b.mp4", "b.m4s"] {
            #expect(try #require(shelf.proxy).get(shelf.origin.url("/" + name)).status == 200)
        }
        let outcome = try shelf.run("export", shelf.origin.url("/film.m3u8"), "-o", directory.file("film.mp4"))
        #expect(try #require(outcome.failureLine).contains("changes, as at an advertisement"), "\(outcome)")
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/ffmpeg"), "ffmpeg is not installed"))
    func headersOfSubtitlesAreNotText() throws {
        let shelf = try Shelf(), url = shelf.origin.url("/subtitles.m3u8")
        let lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:2"] + (1...2).flatMap { ["#EXTINF:2,", "\($0).vtt"] }
        shelf.origin.serve(
            "/subtitles.m3u8", bytes: Array((lines + ["#EXT-X-ENDLIST", ""]).joined(separator: "\n").utf8),
            contentType: "application/vnd.apple.mpegurl")
        for number in 1...2 {
            let text =
                "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00.000\n\n00:0\(number).000 --> 00:0\(number).500\nHello\n"
            shelf.origin.serve("/\(number).vtt", bytes: Array(text.utf8), contentType: "text/vtt")
        }
        for path in ["/subtitles.m3u8", "/1.vtt", "/2.vtt"] {
            #expect(try #require(shelf.proxy).get(shelf.origin.url(path)).status == 200)
        }
        for suffix in ["vtt", "srt"] {
            let file = directory.file("film." + suffix)
            _ = try shelf.say("export", url, "-o", file)
            let text = String(decoding: try contents(file), as: UTF8.self)
            #expect(text.components(separatedBy: "Hello").count == 3 && !text.contains("X-TIMESTAMP"), "\(text)")
            #expect(text.components(separatedBy: "WEBVTT").count == (suffix == "vtt" ? 2 : 1), "\(text)")
        }
    }

    @Test func severalPeriodsAreRefused() throws {
        let period = """
            <Period duration="PT2S"><AdaptationSet mimeType="video/mp4">
            <SegmentTemplate media="$Number$.m4s" duration="2"/>
            <Representation id="a" bandwidth="1000"/></AdaptationSet></Period>
            """
        let text = """
            <?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" \
            mediaPresentationDuration="PT4S" minBufferTime="PT1S">\(period)\(period)</MPD>
            """
        let line = try refusal(of: text, "/film.mpd", type: "application/dash+xml")
        #expect(line.contains("several periods"), "\(line)")
    }

    /// Its text is no film.
    @Test func aPlaylistOfWhichNoFilmCanBeMadeIsRefused() throws {
        let text = "#EXTM3U\n#EXTINF:-1,One\nhttp://channels.example/1\n"
        let line = try refusal(of: text, "/channels.m3u8", type: "application/vnd.apple.mpegurl")
        #expect(line.contains("no film can be made") && line.contains(".m3u8"), "\(line)")
    }
}
