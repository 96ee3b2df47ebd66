import ControlAPI
import DiskCache
import TestSupport
import Testing

/// What a player has read three quarters of was played; what a download client fetches was not.
extension Scenarios {
    @Suite struct S39Played {
        private static let film = Media(seed: 391, size: 1_000_000)

        private static func played(_ stage: Stage) throws -> [String] {
            try stage.read(ResourceListing.self, "/resources?sort=name").resources.filter { $0.played != nil }.map(
                \.urlText)
        }

        @Test(
            arguments: [
                ("mpv/0.35.1", [], true), ("curl/8.5.0", [], false), ("gPodder/3.11.4", [], false),
                ("AntennaPod/3.4.0", [], false), ("AntennaPod/3.4.0", [("Icy-MetaData", "1")], true),
                ("Firefox/1", [("Origin", "https://other.example"), ("Sec-Fetch-Site", "cross-site")], false),
            ] as [(String, [(String, String)], Bool)])
        func playersPlayAndDownloadClientsDoNot(agent: String, headers: [(String, String)], isPlayed: Bool) async throws
        {
            try await scenario { stage in
                for path in ["/a.mp4", "/b.mp4"] { stage.origin.serve(path, Self.film) }
                _ = try stage.get("/a.mp4", headers: [("User-Agent", agent)] + headers)
                // Whatever is to be noted of the first has been by the time of the second.
                _ = try stage.get("/b.mp4", headers: [("User-Agent", "player")])
                let both = ["/a.mp4", "/b.mp4"].map { stage.origin.url($0) }
                try eventually("what was played") { try Self.played(stage).contains(both[1]) }
                #expect(try Self.played(stage) == (isPlayed ? both : [both[1]]))
            }
        }

        /// Of one that was not downloaded, nobody knows what else belongs to it.
        @Test func streamThatWasDownloadedIsPlayedWithThreeQuartersOfIt() async throws {
            try await scenario { stage in
                for name in ["kept", "other"] {
                    let lines = (0..<4).map { "#EXTINF:4,\n\(name)\($0).ts" }.joined(separator: "\n")
                    stage.origin.serve(
                        "/\(name).m3u8", bytes: Array("#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(lines)\n#EXT-X-ENDLIST".utf8)
                    )
                    for number in 0..<4 { stage.origin.serve("/\(name)\(number).ts", Self.film) }
                }
                _ = try stage.download("/kept.m3u8").complete()
                let kept = stage.origin.url("/kept.m3u8")
                func play(_ names: [String], by agent: String) throws {
                    for name in names {
                        try #expect(stage.get("/\(name)", headers: [("User-Agent", agent)]).status == 200)
                    }
                }
                func removable() throws -> Int {
                    let text = try stage.control(
                        "DELETE", "/resources?played=true&include_pinned=true&dry_run=true")
                    return try ControlJSON.decode(RemovalReport.self, from: text.body).resources
                }
                try play(["other.m3u8", "other0.ts", "other1.ts", "other2.ts", "other3.ts"], by: "mpv/1")
                try play(["kept.m3u8", "kept0.ts", "kept1.ts", "kept1.ts"], by: "mpv/1")
                try play(["kept2.ts", "kept3.ts"], by: "curl/8.5.0")
                try #expect(Self.played(stage).isEmpty && removable() == 0)
                try play(["kept3.ts"], by: "VLC/3")
                try eventually("a stream that was played") { try Self.played(stage) == [kept] }
                try #expect(removable() == 1)
            }
        }

        @Test func partsOfSeveralPlayersCountTogether() async throws {
            try await scenario { stage in
                stage.origin.serve("/a.mp4", Self.film)
                for (range, agent) in [("bytes=0-399999", "mpv/1"), ("bytes=300000-699999", "VLC/3")] {
                    try #expect(stage.get("/a.mp4", range: range, headers: [("User-Agent", agent)]).status == 206)
                }
                #expect(try Self.played(stage).isEmpty)
                try #expect(stage.get("/a.mp4", range: "bytes=950000-999999").status == 206)
                try eventually("a film that was played") { try !Self.played(stage).isEmpty }
            }
        }
    }
}
