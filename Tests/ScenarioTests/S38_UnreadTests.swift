import Activity
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 38, size: 6_000_000)
/// Short enough never to be far ahead of its reader.
private let short = Media(seed: 39, size: 100_000)

extension Scenarios {
    /// Clients that ask and do not read.
    @Suite struct S38Unread {
        enum Kind: CaseIterable { case notStored, error, post }

        /// Asks for a path and reads no more than the head.
        private func ask(_ path: String, _ kind: Kind, on stage: Stage) throws -> RawClient {
            stage.origin.serve("/vod" + path, film)
            stage.origin.script("/vod" + path) {
                $0.headers = [("Cache-Control", "no-store")]
                guard kind != .notStored else { return }
                ($0.status, $0.body) = (kind == .error ? 403 : 200, film.bytes(0..<film.size))
            }
            let player = try stage.player(receiveBuffer: 4096)
            try player.send(player.request("/tv" + path, method: kind == .post ? "POST" : "GET"))
            return player
        }

        private func expectRest(of player: RawClient) throws {
            var rest: [UInt8] = []
            while case let piece = try player.readBody(upTo: 1 << 20), !piece.isEmpty { rest += piece }
            #expect(film.difference(rest, from: 0..<film.size) == nil)
        }

        /// Each would hold up to 2 MiB, and twelve hold the whole limit.
        @Test(arguments: Kind.allCases) func whatTheyAreSentStaysWithinTheLimit(kind: Kind) async throws {
            try await mounted(configure: { $0.maxBuffered = 4 << 20 }) { stage in
                let players = try (0..<24).map { index in
                    let player = try ask("/\(index)", kind, on: stage)
                    #expect(try player.readHead().status == (kind == .error ? 403 : 200))
                    return player
                }
                try stage.waitForStats("their transfers") { $0[\.pausedTransfers] == Int64(players.count) }
                let (limit, bytes) = (try stage.stats[\.transitLimit], try stage.stats[\.transitBytes])
                #expect(limit == 4 << 20 && bytes > 1 << 20 && bytes <= limit)
                for player in players { try expectRest(of: player) }
                try stage.waitForStats("nothing in transit") { $0[\.transitBytes] == 0 }
            }
        }

        /// A text of 2 MB that is made anew for each of them, which half of the limit holds.
        @Test(arguments: [nil, "bytes=1-"]) func textsAreCountedAndRefusedBeyondTheLimit(range: String?) async throws {
            try await scenario {
                $0.configure { $0.maxBuffered = 4 << 20 }
            } _: { stage in
                let segments = String(repeating: "#EXTINF:2,\n/1\n", count: 60_000)
                stage.origin.serve(
                    "/l.m3u8", bytes: Array("#EXTM3U\n#EXT-X-TARGETDURATION:2\n\(segments)#EXT-X-ENDLIST\n".utf8),
                    contentType: "application/vnd.apple.mpegurl")
                stage.origin.script("/l.m3u8") { $0.headers = [("Cache-Control", "max-age=600")] }
                let players = try (0..<3).map { _ in try stage.playerOf("/l.m3u8", range: range, receiveBuffer: 4096) }
                #expect(players.map(\.head.status) == [range == nil ? 200 : 206, 503, 503])
                #expect(players[2].head.headers["Retry-After"] != nil)
                let stats = try stage.stats
                #expect(stats[\.transitBytes] > 2_000_000 && stats[\.transitBytes] <= stats[\.transitLimit])
                var rest = 0
                while case let piece = try players[0].player.readBody(upTo: 1 << 20), !piece.isEmpty {
                    rest += piece.count
                }
                #expect(rest > 2_000_000)
                try stage.waitForStats("nothing in transit") { $0[\.transitBytes] == 0 }
                try #expect(stage.get("/l.m3u8").status == 200)
            }
        }

        @Test func whatIsCachedTakesNothingOfIt() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                try stage.catchUp()
                let (player, head) = try stage.playerOf("/film.mp4", receiveBuffer: 4096)
                #expect(head.isHit)
                try #expect(stage.stats[\.transitBytes] == 0)
                try expectRest(of: player)
            }
        }

        /// Of eight slots one client has six, and of four places for paused transfers three.
        @Test func transfersThatCannotBeContinuedKeepTheirSlots() async throws {
            try await mounted(configure: { $0.maxFetches = 8 }) { stage in
                let first = try (0..<9).map { index in
                    let player = try ask("/\(index)", .notStored, on: stage)
                    #expect(try player.readHead().status == 200)
                    return player
                }
                let more = try (9..<12).map { try ask("/\($0)", .notStored, on: stage) }
                try stage.waitForStats("all of them") {
                    $0[\.openFetches] == 12 && $0[\.openTransfers] == 6 && $0[\.pausedTransfers] == 3
                }
                #expect((0..<12).filter { stage.origin.requestCount("/vod/\($0)") > 0 } == Array(0..<9))
                for player in first { try expectRest(of: player) }
                for player in more {
                    #expect(try player.readHead().status == 200)
                    try expectRest(of: player)
                }
                try stage.waitForStats("the end") { $0[\.openTransfers] == 0 && $0[\.pausedTransfers] == 0 }
            }
        }

        /// Others begin, and end, while the two places for paused transfers are taken.
        @Test func whoBeginsMakesNobodyGiveWay() async throws {
            try await scenario {
                $0.fill(.read)
                $0.configure { $0.maxFetches = 4 }
            } _: { stage in
                for index in 0..<8 { stage.origin.serve("/\(index).mp4", index < 2 ? film : short) }
                let players = try (0..<2).map { try stage.playerOf("/\($0).mp4", receiveBuffer: 4096).player }
                try stage.waitForStats("those that pause") { $0[\.pausedTransfers] == 2 }
                for index in 2..<8 { expectWhole(try stage.get("/\(index).mp4"), short) }
                for player in players { try expectRest(of: player) }
                #expect((0..<2).allSatisfy { stage.origin.requestCount("/\($0).mp4") == 1 })
            }
        }

        /// Two places for paused transfers: those that have paused for longest end, and their players do not notice.
        @Test func transfersThatCanBeContinuedGiveWay() async throws {
            try await scenario {
                $0.fill(.read)
                $0.configure { $0.maxFetches = 4 }
            } _: { stage in
                for index in 0..<6 { stage.origin.serve("/\(index).mp4", film) }
                let players = try (0..<6).map { index in
                    let (player, head) = try stage.playerOf("/\(index).mp4", receiveBuffer: 4096)
                    #expect(head.status == 200)
                    return player
                }
                try stage.waitForStats("those that stay") {
                    $0[\.openFetches] == 2 && $0[\.pausedTransfers] == 2 && $0[\.openTransfers] == 0
                }
                for player in players { try expectRest(of: player) }
                // Which those are depends on when each began to pause.
                #expect((0..<6).count { stage.origin.requestCount("/\($0).mp4") > 1 } >= 4)
            }
        }
    }
}
