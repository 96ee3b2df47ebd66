import Testing
import TestSupport

private let chunk: Int64 = 65_536
private let film = Media(seed: 9, size: 3_000_000)
private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

extension Scenarios {
    /// Several ranges in one request (RFC 9110 §14.2, §14.6, §15.3.7.2).
    @Suite struct S09Multipart {
        // MARK: Parts

        @Test(
            arguments: [
                ("bytes=0-9,1000-1999", [0..<10, 1000..<2000]),
                ("bytes=2000000-2000009, 5-9", [2_000_000..<2_000_010, 5..<10]),
                ("bytes=0-0,-1", [0..<1, 2_999_999..<3_000_000]),
                ("bytes=-100000,0-99999,1500000-1599999", [2_900_000..<3_000_000, 0..<100_000, 1_500_000..<1_600_000]),
                ("bytes=65530-65539,131000-196700,1-1", [65_530..<65_540, 131_000..<196_701, 1..<2]),
                // Near each other, or one in the other: one part in place of both.
                ("bytes=500000-500009,0-9,500050-500059", [500_000..<500_060, 0..<10]),
                ("bytes=1999990-2000009,7-7,1500000-2000000", [1_500_000..<2_000_010, 7..<8]),
                // What is outside is left out.
                ("bytes=3000000-,9-9,2000-2000", [9..<10, 2000..<2001]),
                ("bytes=5000000-6000000,-10,100-109", [2_999_990..<3_000_000, 100..<110]),
            ] as [(String, [Range<Int64>])], CacheState.allCases)
        func rangesAreAnsweredWithTheirParts(form: (field: String, parts: [Range<Int64>]), state: CacheState)
            async throws
        {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                try state.prepare(stage)
                let response = try stage.get("/film.mp4", range: form.field)
                expectParts(response, form.parts, of: film)
                #expect(response.headers["ETag"] == "\"v1\"" && response.headers["Accept-Ranges"] == "bytes")
                #expect(response.isHit == (state == .cached))
                // What was fetched for it is there, once the chunks in which its parts end are.
                try stage.waitForStats("the last chunks") { $0[\.openFetches] == 0 }
                stage.origin.stop()
                let again = try stage.get("/film.mp4", range: form.field)
                expectParts(again, form.parts, of: film)
                #expect(again.isHit)
            }
        }

        @Test(arguments: CacheState.allCases) func oneRangeThatIsLeftIsAPlainPart(state: CacheState) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for (index, (field, range))
                    in ([
                        ("bytes=0-9,5-19", 0..<20), ("bytes=5-19,0-9,20-29", 0..<30), ("bytes=0-9,3000000-", 0..<10),
                        ("bytes=0-,-5,7-8", 0..<3_000_000),
                        ("bytes=100-199,250-299", 100..<300),
                    ] as [(String, Range<Int64>)]).enumerated()
                {
                    let path = "/film.mp4?\(index)"
                    try state.prepare(stage, path)
                    let response = try stage.get(path, range: field)
                    expectPart(response, range, of: film, "\(field)")
                    #expect(response.headers["Content-Type"] == "video/mp4", "\(field)")
                }
            }
        }

        @Test func onlyTheGapsAreFetched() async throws {
            try await scenario { stage in
                let film = Media(seed: 10, size: 10_000_000)
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-999999")
                let response = try stage.get(
                    "/film.mp4", range: "bytes=500000-500009,5000000-5000999,9000000-9000999,700000-700009")
                expectParts(
                    response, [500_000..<500_010, 5_000_000..<5_001_000, 9_000_000..<9_001_000, 700_000..<700_010],
                    of: film)
                #expect(response.cacheStatus == "reelcache; fwd=partial")
                let gaps = [5_000_000, 9_000_000].map { $0 / chunk * chunk..<($0 / chunk + 1) * chunk }
                #expect(Array(stage.origin.ranges("/film.mp4", of: film).dropFirst()) == gaps)
                #expect(
                    stage.origin.requests("/film.mp4").dropFirst().map { $0.headers["If-Range"] } == [
                        "\"v1\"", "\"v1\"",
                    ])
                #expect(stage.origin.requests("/film.mp4").allSatisfy { $0.headers["Range"]?.contains(",") == false })
            }
        }

        @Test func ofAnUnknownFileTheOriginIsAskedForEachPartAlone() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectParts(
                    try stage.get("/film.mp4", range: "bytes=0-9,2000000-2000009"), [0..<10, 2_000_000..<2_000_010],
                    of: film)
                let start = 2_000_000 / chunk * chunk
                #expect(stage.origin.ranges("/film.mp4", of: film) == [0..<chunk, start..<start + chunk])
                try stage.catchUp()
                #expect(stage.origin.bytesSent("/film.mp4") == 2 * chunk)
            }
        }

        @Test func partsComeThroughACacheThatHoldsFewOfThem() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let film = Media(seed: 11, size: 60_000_000)
                stage.origin.serve("/film.mp4", film)
                let parts: [Range<Int64>] = [40_000_000..<60_000_000, 0..<18_000_000, 20_000_000..<38_000_000]
                for _ in 1...2 {
                    expectParts(try stage.get("/film.mp4", range: Self.field(parts)), parts, of: film)
                    #expect(try stage.oversize() == nil)
                }
            }
        }

        @Test func twoPlayersWithTheSameListCostOneFetchOfEachPart() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.hold("/film.mp4")
                let parts: [Range<Int64>] = [0..<100_000, 2_000_000..<2_080_000]
                let players = try (1...2).map { _ in
                    let player = try stage.player()
                    try player.send(player.request(stage.target("/film.mp4"), range: Self.field(parts)))
                    return player
                }
                try stage.waitForStats("a joined request") { $0[\.collapsed] == 1 }
                stage.origin.release("/film.mp4")
                for player in players { expectParts(try player.readResponse(), parts, of: film) }
                try stage.catchUp()
                #expect(stage.origin.bytesSent("/film.mp4") == 4 * chunk)
            }
        }

        @Test func lengthIsExactSoThatTheConnectionGoesOn() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let player = try stage.player()
                let requests = ["bytes=0-9,1000-1999", nil, "bytes=-1,0-0", "bytes=5-9"].map {
                    player.request(stage.target("/film.mp4"), range: $0)
                }
                for _ in 1...2 {
                    let responses = try player.pipeline(requests)
                    expectParts(responses[0], [0..<10, 1000..<2000], of: film)
                    expectWhole(responses[1], film)
                    expectParts(responses[2], [2_999_999..<3_000_000, 0..<1], of: film)
                    expectPart(responses[3], 5..<10, of: film)
                }
                #expect(try stage.stats[\.acceptedConnections] == 1)
            }
        }

        @Test func boundaryIsAnotherEachTime() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let types = try (1...8).map { _ in
                    try #require(try stage.get("/film.mp4", range: "bytes=0-9,1000-1999").headers["Content-Type"])
                }
                #expect(Set(types).count == 8)
            }
        }

        @Test func partOfAFileWithoutATypeHasNone() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, contentType: nil)
                expectParts(
                    try stage.get("/film.mp4", range: "bytes=0-9,1000-1999"), [0..<10, 1000..<2000], of: film, type: nil
                )
            }
        }

        @Test func playerOfHTTP10GetsItToo() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let response = try stage.player().get(
                    stage.target("/film.mp4"), range: "bytes=0-9,1000-1999", version: "1.0")
                expectParts(response, [0..<10, 1000..<2000], of: film)
            }
        }

        // MARK: Not parts

        @Test(arguments: ["bytes=3000000-,4000000-5000000", "bytes=-0,9223372036854775807-"], CacheState.allCases)
        func whereNoneIsInsideThatIsSaid(field: String, state: CacheState) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                try state.prepare(stage)
                let response = try stage.get("/film.mp4", range: field)
                #expect(response.status == 416)
                #expect(response.headers["Content-Range"] == "bytes */3000000")
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test(arguments: CacheState.allCases) func sillyListsAreAnsweredWithTheWhole(state: CacheState) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                try state.prepare(stage)
                let tooMany = (0..<65).map { "\($0)-\($0)" }
                let tooManyParts = (0..<33).map { "\($0 * 1000)-\($0 * 1000)" }
                for list in [tooMany, tooManyParts] {
                    expectWhole(try stage.get("/film.mp4", range: "bytes=" + list.joined(separator: ",")), film)
                }
                let overlapping = (0..<64).map { "\($0)-\($0 + 1_000_000)" }
                expectPart(
                    try stage.get("/film.mp4", range: "bytes=" + overlapping.joined(separator: ",")), 0..<1_000_064,
                    of: film)
            }
        }

        @Test(arguments: CacheState.allCases) func rangesOfHEADAreIgnored(state: CacheState) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                try state.prepare(stage)
                let response = try stage.get("/film.mp4", range: "bytes=0-9,1000-1999", method: "HEAD")
                #expect(
                    response.status == 200 && response.headers["Content-Length"] == "3000000"
                        && response.headers["Content-Type"] == "video/mp4")
            }
        }

        @Test(arguments: CacheState.allCases) func ifRangeIsHeeded(state: CacheState) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, lastModified: date)
                for (index, (field, holds))
                    in ([
                        ("\"v1\"", true), ("\"v2\"", false), ("W/\"v1\"", false), (date, true),
                        ("Sun, 06 Nov 1994 08:49:38 GMT", false),
                    ] as [(String, Bool)]).enumerated()
                {
                    let path = "/film.mp4?\(index)"
                    try state.prepare(stage, path)
                    let response = try stage.get(
                        path, range: "bytes=0-9,2000000-2000999", headers: [("If-Range", field)])
                    if holds {
                        expectParts(response, [0..<10, 2_000_000..<2_001_000], of: film, "\(field)")
                    } else {
                        expectWhole(response, film, "\(field)")
                    }
                }
            }
        }

        @Test func withoutALengthTheWholeComes() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { ($0.chunkedEncoding, $0.ignoresRange) = (true, true) }
                let response = try stage.get("/film.mp4", range: "bytes=0-9,1000-1999")
                #expect(response.status == 200 && film.difference(response.body, from: 0..<film.size) == nil)
                expectParts(try stage.get("/film.mp4", range: "bytes=0-9,1000-1999"), [0..<10, 1000..<2000], of: film)
            }
        }

        // MARK: Origins

        @Test func originThatSendsNoPartsIsAskedOnce() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.ignoresRange = true }
                let parts: [Range<Int64>] = [
                    0..<100_000, 1_000_000..<1_100_000, 2_900_000..<3_000_000, 500_000..<500_010,
                ]
                expectParts(try stage.get("/film.mp4", range: Self.field(parts)), parts, of: film)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test func withoutAValidatorThePartsComeOnlyFromWhatIsThere() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { ($0.noValidators, $0.ignoresRange) = (true, true) }
                expectWhole(try stage.get("/film.mp4", range: "bytes=2000000-2000009,0-9"), film)
                expectParts(
                    try stage.get("/film.mp4", range: "bytes=2000000-2000009,0-9"), [2_000_000..<2_000_010, 0..<10],
                    of: film)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test(arguments: [("Cache-Control", "no-store"), ("Vary", "*")], [false, true])
        func ofWhatIsNotStoredOneRangeComes(field: (String, String), ignoresRange: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { ($0.headers, $0.ignoresRange) = ([field], ignoresRange) }
                for _ in 1...2 {
                    expectPart(try stage.get("/film.mp4", range: "bytes=2000000-2000009,0-9"), 0..<10, of: film)
                }
            }
        }

        @Test func partsOfTwoVersionsNeverMeet() async throws {
            try await scenario { stage in
                let other = Media(seed: 12, size: film.size)
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-9")
                stage.origin.serve("/film.mp4", other, etag: "\"v2\"")
                // The first part is there, and its head is out when the origin tells of the other version.
                expectCut { try stage.get("/film.mp4", range: "bytes=0-9,2000000-2000009") }
                let response = try stage.get("/film.mp4", range: "bytes=0-9,2000000-2000009")
                expectParts(response, [0..<10, 2_000_000..<2_000_010], of: other)
                #expect(response.headers["ETag"] == "\"v2\"")
            }
        }

        @Test func versionThatChangedBeforeTheFirstPartIsTheNewOneInAll() async throws {
            try await scenario { stage in
                let other = Media(seed: 12, size: film.size)
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-9")
                stage.origin.serve("/film.mp4", other, etag: "\"v2\"")
                expectParts(
                    try stage.get("/film.mp4", range: "bytes=2000000-2000009,0-9"), [2_000_000..<2_000_010, 0..<10],
                    of: other)
            }
        }

        @Test func failureOfTheFirstPartIsAStatusAndOfALaterOneACut() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-9")
                try stage.catchUp()
                stage.origin.stop()
                expectOneLine(try stage.get("/film.mp4", range: "bytes=2000000-2000009,0-9"), status: 502)
                expectCut { try stage.get("/film.mp4", range: "bytes=0-9,2000000-2000009") }
            }
        }

        @Test func brokenTransferGoesOnInsideAPart() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { ($0.cutAfter, $0.cutTimes) = (100_000, 2) }
                let parts: [Range<Int64>] = [0..<500_000, 2_000_000..<2_500_000]
                expectParts(try stage.get("/film.mp4", range: Self.field(parts)), parts, of: film)
            }
        }

        // MARK: Players that leave

        @Test(arguments: [0, 1]) func playerThatLeavesTakesItsFetchAlong(part: Int) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                if part == 1 { _ = try stage.get("/film.mp4", range: "bytes=0-9") }
                stage.origin.script("/film.mp4") { $0.stallAfter = 1000 }
                let (player, head) = try stage.playerOf(
                    "/film.mp4", range: part == 0 ? "bytes=0-99999,2000000-2000009" : "bytes=0-9,2000000-2099999")
                #expect(head.status == 206)
                _ = try player.readBody(exactly: 100)
                try stage.origin.waitForRequests("/film.mp4", count: part + 1)
                player.close()
                try stage.origin.waitForAbort("/film.mp4")
                try stage.catchUp()
                stage.origin.release("/film.mp4")
                expectParts(
                    try stage.get("/film.mp4", range: "bytes=0-99999,2000000-2000009"),
                    [0..<100_000, 2_000_000..<2_000_010], of: film)
            }
        }

        @Test func playerThatLeavesBeforeTheHeadTakesItsFetchAlong() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.hold("/film.mp4")
                let player = try stage.player()
                try player.send(player.request(stage.target("/film.mp4"), range: "bytes=0-9,2000000-2000009"))
                try stage.origin.waitForRequests("/film.mp4", count: 1)
                player.close()
                try stage.origin.waitForAbort("/film.mp4")
                try stage.catchUp()
            }
        }

        @Test func randomListsAreRightInACacheThatEvicts() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let film = Media(seed: 13, size: 40_000_000)
                stage.origin.serve("/film.mp4", film)
                var seeds = SplitMix64.forTest("randomLists")
                let differences = try (0..<4).map { _ in
                    let seed = seeds.next()
                    return try Background { try Self.difference(ofListsFrom: SplitMix64(seed: seed), by: stage, film) }
                }.compactMap { try $0.value() }
                #expect(differences == [])
                #expect(try stage.oversize() == nil)
            }
        }

        // MARK: Lists

        private static func difference(ofListsFrom random: SplitMix64, by stage: Stage, _ film: Media) throws -> String?
        {
            var random = random
            let player = try stage.player()
            for _ in 0..<12 {
                let parts = parts(of: film, &random)
                let response = try player.get(stage.target("/film.mp4"), range: field(parts))
                if let difference = ScenarioTests.difference(response, from: parts, of: film) {
                    return "\(parts): \(difference)"
                }
            }
            return nil
        }

        private static func field(_ parts: [Range<Int64>]) -> String {
            "bytes=" + parts.map { "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(separator: ",")
        }

        /// Two to five parts far enough from each other, in any order.
        private static func parts(of film: Media, _ random: inout SplitMix64) -> [Range<Int64>] {
            let bounds = Set(
                (0..<2 * Int.random(in: 2...5, using: &random)).map { _ in
                    Int64.random(in: 0..<film.size / 1000, using: &random) * 1000
                }
            ).sorted()
            let parts = stride(from: 0, to: bounds.count - 1, by: 2).map {
                bounds[$0]..<min(bounds[$0 + 1], bounds[$0] + 2_000_000) - 500
            }
            return parts.shuffled(using: &random)
        }
    }
}

/// The response is these parts of the film, in this order, and nothing else.
private func expectParts(
    _ response: RawClient.Response, _ parts: [Range<Int64>], of film: Media, type: String? = "video/mp4",
    _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    let difference = difference(response, from: parts, of: film, type: type)
    #expect(difference == nil, comment, sourceLocation: sourceLocation)
}

/// What is wrong with a response as these parts of a film, taken apart as a stranger would (RFC 2046 §5.1.1); nil where
/// nothing is.
private func difference(
    _ response: RawClient.Response, from parts: [Range<Int64>], of film: Media, type: String? = "video/mp4"
) -> String? {
    guard response.status == 206, response.headers["Content-Range"] == nil else {
        return "not of several parts: \(response.head)"
    }
    guard response.headers["Content-Length"] == "\(response.body.count)" else {
        return "of another length: \(response.head)"
    }
    let types = response.headers.all("Content-Type")
    guard types.count == 1, let match = types[0].wholeMatch(of: /multipart\/byteranges; boundary=([0-9a-f]{32})/) else {
        return "of the types \(types)"
    }
    var rest = response.body[...]
    for (number, range) in parts.enumerated() {
        let type = type.map { "Content-Type: \($0)\r\n" } ?? ""
        let opening =
            "\(number == 0 ? "" : "\r\n")--\(match.1)\r\n\(type)Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(film.size)\r\n\r\n"
        let found = String(decoding: rest.prefix(opening.utf8.count), as: UTF8.self)
        guard found == opening else { return "part \(number) begins with \(found.debugDescription)" }
        rest = rest.dropFirst(opening.utf8.count)
        if let wrong = film.difference(Array(rest.prefix(range.count)), from: range) {
            return "part \(number): \(wrong)"
        }
        rest = rest.dropFirst(range.count)
    }
    let closing = String(decoding: rest.prefix(100), as: UTF8.self)
    return closing == "\r\n--\(match.1)--\r\n" ? nil : "it ends with \(closing.debugDescription)"
}
