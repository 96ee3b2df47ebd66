import Testing
import TestSupport

extension Scenarios {
    /// Many players at random places of several files that do not fit into the cache together, over connections to an
    /// origin that break: each byte is right, the cache stays within its limit, and what it keeps survives a restart.
    @Suite struct S07Random {
        @Test
        func manyPlayersAtRandomPlacesReadTheRightBytes() async throws {
            try await scenario { setting in
                setting.maxSize = 20_000_000
                // More attempts than breaks, since those by a reset may let nothing through.
                setting.tuning.fill.retry.maxAttempts = Self.breaks + 2
            } _: { stage in
                var random = SplitMix64.forTest("manyPlayersAtRandomPlacesReadTheRightBytes")
                let films = Self.sizes.enumerated().map { Media(seed: random.next() &+ UInt64($0), size: $1) }
                for (index, film) in films.enumerated() { Self.serve(film, "/\(index)", stage, &random) }
                let seeds = (0..<16).map { _ in random.next() }
                let wrong = try concurrently(seeds.count) { worker -> [String] in
                    var viewer = Viewer(stage: stage, films: films, random: SplitMix64(seed: seeds[worker]))
                    return try (0..<40).compactMap { _ in try viewer.act().map { "player \(worker): \($0)" } }
                }
                #expect(wrong.flatMap { $0 } == [])
                #expect(try stage.stats[\.evictedBytes] > 10_000_000)
                try stage.catchUp()

                try stage.restart()
                for (index, film) in films.enumerated() {
                    stage.origin.script("/\(index)") {
                        $0.cutAfter = nil; $0.latency = nil
                    }
                    let (player, _) = try stage.playerOf("/\(index)")
                    #expect(try player.difference(from: film, in: 0..<film.size) == nil)
                    #expect(try stage.oversize() == nil)
                }
            }
        }

        /// How often each file's transfers break.
        private static let breaks = 20

        /// Bytes: 64 MB in all.
        private static let sizes: [Int64] = [
            1, 65_535, 65_536, 65_537, 1_000_000, 4_194_304, 4_194_305, 8_388_607, 14_000_001, 31_000_000,
        ]

        private static func serve(_ film: Media, _ path: String, _ stage: Stage, _ random: inout SplitMix64) {
            stage.origin.serve(
                path, film, etag: Bool.random(using: &random) ? "\"\(film.seed)\"" : nil,
                lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")
            let (cut, latency, isChunked, ignoresRange) = (
                Int64.random(in: 0..<max(1, film.size), using: &random), Int.random(in: 0...5, using: &random),
                film.size == 1_000_000, film.size == 4_194_305
            )
            stage.origin.script(path) {
                // What has no length cannot be resumed.
                if !isChunked { ($0.cutAfter, $0.cutTimes, $0.cutsWithReset) = (cut, breaks, cut % 2 == 0) }
                $0.latency = .milliseconds(latency)
                ($0.chunkedEncoding, $0.ignoresRange) = (isChunked, ignoresRange)
            }
        }
    }
}

/// A player that does one thing after the other.
private struct Viewer {
    let stage: Stage
    let films: [Media]
    var random: SplitMix64

    /// Plays something. Returns what was wrong with it; nil where nothing was.
    mutating func act() throws -> String? {
        let index = Int.random(in: 0..<films.count, using: &random)
        let (path, film) = ("/\(index)", films[index])
        let wrong: String?
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<12:
            let (field, range) = randomRange(of: film)
            wrong = try read(path, film, range, field)
        case 12..<14: wrong = try read(path, film, 0..<film.size, nil)
        case 14..<17:
            let start = Int64.random(in: 0..<film.size, using: &random)
            wrong = try read(
                path, film, start..<film.size, "bytes=\(start)-",
                leavingAfter: Int64.random(in: 0...film.size - start, using: &random))
        default:
            let head = try stage.get(path, method: "HEAD")
            wrong = head.status == 200 && head.body.isEmpty ? nil : "HEAD \(head.status)"
        }
        return try wrong.map { "\(path) of \(film.size): \($0)" } ?? stage.oversize()
    }

    private mutating func randomRange(of film: Media) -> (field: String, Range<Int64>) {
        let start = Int64.random(in: 0..<film.size, using: &random)
        let count = Int64.random(in: 1...min(2_000_000, film.size), using: &random)
        let end = min(start + count, film.size)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return ("bytes=-\(count)", film.size - count..<film.size)
        case 1 where film.size - start < 2_000_000: return ("bytes=\(start)-", start..<film.size)
        default: return ((start..<end).rangeField, start..<end)
        }
    }

    /// Reads a range, or the first part of it.
    private func read(
        _ path: String, _ film: Media, _ range: Range<Int64>, _ field: String?, leavingAfter limit: Int64 = .max
    ) throws -> String? {
        let (player, head) = try stage.playerOf(path, range: field)
        defer { player.close() }
        // RFC 9110 §14.2: while the length is not known, the answer to a range is the whole.
        let isWhole = head.status == 200
        guard isWhole || head.status == 206 else { return "\(field ?? "whole"): \(head.status)" }
        if isWhole, field != nil, head.headers["Content-Length"] != nil { return "\(field ?? ""): the whole" }
        if head.status == 206,
            head.headers["Content-Range"] != "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(film.size)"
        {
            return "\(field ?? ""): Content-Range \(head.headers["Content-Range"] ?? "missing")"
        }
        let body = isWhole ? 0..<film.size : range
        let wanted = body.lowerBound..<min(body.upperBound, body.lowerBound + min(limit, Int64(body.count)))
        do {
            return try player.difference(from: film, in: wanted).map {
                "\(field ?? "whole"), \(head.cacheStatus): \($0)"
            }
        } catch let error as RawClient.ResponseError {
            return "\(field ?? "whole"), \(head.cacheStatus): \(error), after \(try stage.stats.errors)"
        }
    }
}
