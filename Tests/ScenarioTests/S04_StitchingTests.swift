import Synchronization
import Testing
import TestSupport

/// Each is an episode with other advertisements.
private let stitchings = (0..<5).map { Media(seed: 460 + UInt64($0), size: 1_000_000 + Int64($0) * 1000) }

extension Stage {
    /// An episode that is stitched anew for each request, behind a redirect or at once.
    fileprivate func serveEpisode(etag: String?, control: String? = nil, behindRedirect: Bool = true) {
        let headers = control.map { [("Cache-Control", $0)] } ?? []
        guard behindRedirect else {
            origin.serve("/episode.mp3", stitchings[0], etag: etag)
            return origin.script("/episode.mp3") { ($0.versions, $0.headers) = (stitchings, headers) }
        }
        for (number, media) in stitchings.enumerated() {
            origin.serve("/\(number).mp3", media, etag: etag.map { String($0.dropLast()) + "-\(number)\"" })
            origin.script("/\(number).mp3") { $0.headers = headers }
        }
        origin.script("/episode.mp3") { $0.redirects = stitchings.indices.map { "/\($0).mp3" } }
    }

    /// Which of them the proxy answers a range with: by its bytes and by its length.
    fileprivate func stitching(_ range: Range<Int64>) throws -> Int? {
        let response = try get("/episode.mp3", range: range.rangeField)
        #expect(response.status == 206)
        return stitchings.firstIndex {
            response.headers["Content-Range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\($0.size)"
                && $0.difference(response.body, from: range) == nil
        }
    }
}

/// The parts that a player asks for, one after the other.
private let parts: [Range<Int64>] = [
    0..<100_000, 900_000..<1_000_000, 100_000..<200_000, 0..<10, 500_000..<600_000, 200_000..<300_000,
]

/// A clock that goes when it is told to.
private final class Clock: Sendable {
    let nanoseconds = Atomic<UInt64>(1_000_000_000_000)
    func pass(seconds: UInt64) { nanoseconds.add(seconds * 1_000_000_000, ordering: .relaxed) }
}

extension Scenarios {
    /// Origins that answer differently each time.
    @Suite struct S04Stitching {
        // What a player puts together is one episode, though nothing of it is kept.
        @Test(
            arguments: [("W/\"e\"", nil), (nil, nil), ("\"e\"", "no-store"), (nil, "no-store")] as [(String?, String?)])
        func onePlayStaysWithOneStitching(etag: String?, control: String?) async throws {
            try await scenario { stage in
                stage.serveEpisode(etag: etag, control: control)
                let heard = try parts.map { try stage.stitching($0) }
                #expect(heard == Array(repeating: 0, count: parts.count))
                #expect(stage.origin.requestCount("/episode.mp3") == 1)
            }
        }

        @Test func playersAtOnceHaveOneStitching() async throws {
            try await scenario { stage in
                stage.serveEpisode(etag: nil, control: "no-store")
                stage.origin.script("/0.mp3") { $0.stallAfter = 50_000 }
                let (first, _) = try stage.playerOf("/episode.mp3", range: "bytes=0-99999")
                #expect(try first.difference(from: stitchings[0], in: 0..<50_000) == nil)
                stage.origin.script("/0.mp3") { $0.stallAfter = .max }
                // For the whole, as at the begin of a play: but it has begun.
                let response = try stage.get("/episode.mp3")
                expectWhole(response, stitchings[0])
                #expect(stage.origin.requestCount("/episode.mp3") == 1)
                stage.origin.release("/0.mp3")
                #expect(try first.difference(from: stitchings[0], in: 50_000..<100_000) == nil)
            }
        }

        @Test func nextPlayIsStitchedAnew() async throws {
            let clock = Clock()
            try await scenario {
                $0.tuning.fill.clock = { clock.nanoseconds.load(ordering: .relaxed) }
            } _: { stage in
                stage.serveEpisode(etag: nil, control: "no-store")
                var heard = try [stage.stitching(0..<100)]
                try stage.catchUp()
                clock.pass(seconds: 299)
                heard.append(try stage.stitching(100..<200))
                // A play lasts for as long as a transfer of it does, and that may end after its client has all.
                try stage.catchUp()
                clock.pass(seconds: 301)
                heard += try [stage.stitching(0..<100), stage.stitching(100..<200)]
                #expect(heard == [0, 0, 1, 1])
                // Who asks for the whole begins.
                expectWhole(try stage.get("/episode.mp3"), stitchings[2])
                #expect(try stage.stitching(100..<200) == 2)
            }
        }

        // Signed URLs expire.
        @Test(arguments: [403, 404, 410])
        func stitchingThatIsGoneIsAskedForAtTheFirstURL(status: Int) async throws {
            try await scenario { stage in
                stage.serveEpisode(etag: "W/\"e\"")
                let first = try stage.stitching(0..<100)
                stage.origin.script("/0.mp3") { $0.status = status }
                let others = try [stage.stitching(100..<200), stage.stitching(200..<300)]
                #expect(first == 0 && others == [1, 1])
            }
        }

        @Test func fileThatIsNotThereStaysTheOriginsError() async throws {
            try await scenario { stage in
                stage.origin.script("/episode.mp3") { ($0.status, $0.body) = (404, Array("no such episode\n".utf8)) }
                for count in 1...2 {
                    let response = try stage.get("/episode.mp3", range: "bytes=0-9")
                    #expect(response.text == "no such episode\n")
                    #expect(stage.origin.requestCount("/episode.mp3") == count)
                }
            }
        }

        // There is no place to stay with: the whole, fetched once, is one version.
        @Test(arguments: ["W/\"e\"", nil])
        func episodeThatIsAnotherEachTimeIsFetchedAsAWhole(etag: String?) async throws {
            try await scenario { stage in
                stage.serveEpisode(etag: etag, behindRedirect: false)
                let heard = try parts.map { try stage.stitching($0) }
                #expect(heard.first == 0 && !heard.contains(nil))
                #expect(Set(heard.dropFirst()).count == 1, "\(heard)")
                #expect(stage.origin.requestCount("/episode.mp3") == 3)
            }
        }
    }
}
