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
    private func shelf(_ ownership: Ownership, played: Int = 3, map: String? = nil) throws -> Shelf {
        let shelf = try Shelf(.running)
        let lines =
            ["#EXTM3U", "#EXT-X-TARGETDURATION:2"] + (map.map { ["#EXT-X-MAP:URI=\"\($0)\""] } ?? [])
            + (1...3).flatMap { ["#EXTINF:2,", "\($0).ts"] } + ["#EXT-X-ENDLIST", ""]
        shelf.origin.serve(
            "/film.m3u8", bytes: Array(lines.joined(separator: "\n").utf8), contentType: "application/vnd.apple.mpegurl"
        )
        for (number, media) in segments.enumerated() {
            shelf.origin.serve("/\(number + 1).ts", media, contentType: "video/mp2t")
        }
        let names = ["/film.m3u8"] + (map.map { ["/" + $0] } ?? []) + (1...3).prefix(played).map { "/\($0).ts" }
        if let map { shelf.origin.serve("/" + map, bytes: [1, 2, 3, 4], contentType: "video/mp4") }
        for name in names { #expect(try #require(shelf.proxy).get(shelf.origin.url(name)).status == 200) }
        if ownership == .alone { try shelf.close() }
        return shelf
    }

    private func contents(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private var film: [UInt8] { segments.flatMap { $0.bytes(0..<$0.size) } }

    @Test(arguments: Ownership.allCases) func aTransportStreamIsJoinedByteForByte(ownership: Ownership) throws {
        let shelf = try shelf(ownership), file = directory.file("film.ts")
        #expect(try shelf.say("export", shelf.origin.url("/film.m3u8"), "-o", file).contains("a copy"))
        #expect(try contents(file) == film)
        // The playlist itself, where a name for one says so.
        let list = directory.file("film.m3u8")
        _ = try shelf.say("export", shelf.origin.url("/film.m3u8"), "-o", list)
        #expect(try contents(list).starts(with: "#EXTM3U".utf8))
    }

    @Test func anInitializationSectionComesFirst() throws {
        let shelf = try shelf(.alone, map: "init.mp4"), file = directory.file("film.mp4")
        _ = try shelf.say("export", shelf.origin.url("/film.m3u8"), "-o", file)
        #expect(try contents(file) == [1, 2, 3, 4] + film)
    }

    @Test(arguments: Ownership.allCases) func whatLacksSegmentsIsRefused(ownership: Ownership) throws {
        let shelf = try shelf(ownership, played: 2), file = directory.file("film.ts")
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

    @Test func anotherContainerNeedsFFmpeg() throws {
        let shelf = try shelf(.alone), file = directory.file("film.mkv")
        let outcome = try shelf.run(
            "export", shelf.origin.url("/film.m3u8"), "-o", file, environment: ["PATH": "/nowhere"])
        let line = try #require(outcome.failureLine)
        #expect(line.contains("needs ffmpeg, which is not installed"), "\(line)")
        // With it, what is no film is refused in its words.
        let refused = try #require(try shelf.run("export", shelf.origin.url("/film.m3u8"), "-o", file).failureLine)
        #expect(refused.contains("ffmpeg cannot") || refused.contains("needs ffmpeg"), "\(refused)")
        #expect(!FileManager.default.fileExists(atPath: file))
    }
}
