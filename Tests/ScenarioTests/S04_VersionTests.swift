import Testing
import TestSupport

private let film = Media(seed: 44, size: 1_048_576)
private let newer = Media(seed: 45, size: film.size)
private let date = "Sun, 06 Nov 1994 08:49:37 GMT"
private let later = "Mon, 07 Nov 1994 08:49:37 GMT"

extension Scenarios {
    /// Answers of hostile and careless origins to requests for more of what is stored.
    @Suite struct S04Versions {
        // Any page can have the proxy asked for a suffix of what it likes.
        @Test(
            arguments: [
                "bytes 9223372036854775806-9223372036854775806/*",
                "bytes 9223372036854775806-9223372036854775806/9223372036854775807",
                "bytes 1152921504606846975-1152921504606846975/*", "bytes 1152921504606846976-1152921504606846976/*",
                "bytes 4611686018427387904-4611686018427387904/*", "bytes 0-9223372036854775806/9223372036854775807",
            ],
            [
                "bytes=-5", "bytes=-9223372036854775807", "bytes=0-", "bytes=9223372036854775806-",
                "bytes=0-9223372036854775806", "bytes=5-9,-5",
            ])
        func contentRangeAtTheEndOfTheNumbersIsABadGateway(field: String, range: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.status = 206; $0.body = Array("x".utf8); $0.headers = [("Content-Range", field)]
                }
                expectOneLine(try stage.get("/film.mp4", range: range), status: 502)
                stage.origin.script("/film.mp4") {
                    $0.status = nil; $0.body = nil; $0.headers = []
                }
                expectWhole(try stage.get("/film.mp4"), film)
                // The same for a part of what is known.
                stage.origin.serve("/other.mp4", film)
                expectPart(try stage.get("/other.mp4", range: "bytes=0-9"), 0..<10, of: film)
                stage.origin.script("/other.mp4") {
                    $0.status = 206; $0.body = Array("x".utf8);
                    $0.headers = [("Content-Range", field), ("ETag", "\"v1\"")]
                }
                do { #expect([206, 416, 502].contains(try stage.get("/other.mp4", range: range).status)) } catch let
                    error as RawClient.ResponseError
                {
                    // What was there has gone out by then.
                    #expect(error.isCut)
                }
                #expect(try stage.get("/other.mp4", range: "bytes=0-9").status < 500)
            }
        }

        // RFC 9110 §15.3.7: a 206 has the ETag that a 200 would have. An origin that sends another version's part
        // without one must not be believed.
        @Test(
            arguments: [
                ("\"v1\"", [("Last-Modified", later)]), ("\"v1\"", []), (nil, [("Last-Modified", later)]),
                (nil, [("ETag", "\"v2\"")]),
            ] as [(String?, [(String, String)])])
        func partThatSaysSomethingElseOfItsVersionIsNotJoinedToWhatIsStored(etag: String?, said: [(String, String)])
            async throws
        {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, etag: etag, lastModified: date)
                expectPart(try stage.get("/film.mp4", range: "bytes=0-65535"), 0..<65_536, of: film)
                // It heeds no condition.
                let range = 65_536..<film.size
                stage.origin.script("/film.mp4") {
                    ($0.media, $0.etag, $0.lastModified) = (newer, nil, nil)
                    ($0.status, $0.body) = (206, newer.bytes(range))
                    $0.headers = said + [("Content-Range", "bytes 65536-\(film.size - 1)/\(film.size)")]
                }
                let player = try stage.player()
                expectCut {
                    try player.send(player.request(stage.target("/film.mp4")))
                    return try player.readResponse()
                }
                #expect(film.firstMismatch(player.partialBody, at: 0) == nil && player.partialBody.count == 65_536)
                stage.origin.serve("/film.mp4", newer, etag: "\"v2\"", lastModified: later)
                stage.origin.script("/film.mp4") {
                    $0.status = nil; $0.headers = []
                }
                expectWhole(try stage.get("/film.mp4"), newer)
            }
        }

        @Test func partOfADatedFileThatLeavesTheDateOutIsOneOfIt() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, etag: nil, lastModified: date)
                expectPart(try stage.get("/film.mp4", range: "bytes=0-65535"), 0..<65_536, of: film)
                stage.origin.script("/film.mp4") {
                    $0.lastModified = nil
                    ($0.status, $0.body) = (206, film.bytes(65_536..<film.size))
                    $0.headers = [("Content-Range", "bytes 65536-\(film.size - 1)/\(film.size)")]
                }
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requestCount("/film.mp4") == 2)
            }
        }
    }
}
