import CacheFill
import Testing
import TestSupport

private let film = Media(seed: 4, size: 5_000_000)
private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

extension Scenarios {
    @Suite struct S04Origin {
        // MARK: Redirects

        @Test func redirectIsFollowedAndItsGoalCached() async throws {
            try await scenario { stage in
                stage.origin.serve("/real.mp4", film)
                stage.origin.script("/film.mp4") { $0.redirect = "/real.mp4" }
                expectWhole(try stage.get("/film.mp4"), film)
                let again = try stage.get("/film.mp4")
                expectWhole(again, film)
                #expect(again.isHit)
                #expect(stage.origin.requestCount("/film.mp4") == 1 && stage.origin.requestCount("/real.mp4") == 1)
            }
        }

        // Origins that stitch advertisements into each answer do so behind a redirect.
        @Test func gapIsFetchedFromWhereTheRestCameFrom() async throws {
            try await scenario { stage in
                let second = try ScriptedOrigin()
                defer { second.stop() }
                second.serve("/real.mp4", film)
                stage.origin.script("/film.mp4") { $0.redirect = second.url("/real.mp4") }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1000999"), 1_000_000..<1_001_000, of: film)
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
                #expect(second.bytesSent("/real.mp4") == film.size)
            }
        }

        @Test(arguments: ["/film.mp4", "ftp://127.0.0.1/film.mp4"])
        func redirectThatLeadsNowhereIsABadGateway(location: String) async throws {
            try await scenario { stage in
                stage.origin.script("/film.mp4") { $0.redirect = location }
                expectOneLine(try stage.get("/film.mp4"), status: 502)
            }
        }

        @Test func redirectToAnAddressThatIsNotAllowedIsRefused() async throws {
            try await scenario { stage in
                stage.origin.serve("/real.mp4", film)
                stage.origin.script("/film.mp4") { $0.redirect = "http://127.0.0.2:\(stage.origin.port)/real.mp4" }
                let response = try stage.get("/film.mp4")
                expectOneLine(response, status: 403)
                #expect(response.text.contains("add 127.0.0.2 to allow"))
            }
        }

        @Test(arguments: ["GET", "HEAD"])
        func originThatIsNotAllowedIsRefusedWithWhatToAdd(method: String) async throws {
            try await scenario {
                $0.allow = []
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                let response = try stage.get("/film.mp4", method: method)
                #expect(response.status == 403)
                if method == "GET" {
                    expectOneLine(response)
                    #expect(response.text.contains("add 127.0.0.1 to allow"))
                }
                #expect(stage.origin.snapshot.connectionCount == 0)
            }
        }

        // MARK: Errors

        @Test(arguments: [404, 403, 410, 500, 503, 429], [nil, "bytes=1000000-1000999"])
        func errorOfTheOriginReachesThePlayerWithItsBodyAndIsNotCached(status: Int, range: String?) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.status = status; $0.body = Array("the origin's page\n".utf8); $0.media = nil
                }
                for count in 1...2 {
                    let response = try stage.get("/film.mp4", range: range)
                    #expect(response.status == status)
                    #expect(response.text == "the origin's page\n")
                    #expect(response.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=\(status)")
                    #expect(stage.origin.requestCount("/film.mp4") == count)
                }
                #expect(try stage.get("/film.mp4", method: "HEAD").status == status)
                stage.origin.script("/film.mp4") {
                    $0.status = nil; $0.body = nil; $0.media = film
                }
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func errorForAGapReachesThePlayerAndLeavesWhatIsCached() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectPart(try stage.get("/film.mp4", range: "bytes=0-65535"), 0..<65_536, of: film)
                stage.origin.script("/film.mp4") { $0.status = 403 }
                let response = try stage.get("/film.mp4", range: "bytes=1000000-")
                expectOneLine(response, status: 403)
                stage.origin.script("/film.mp4") { $0.status = nil }
                #expect(try stage.get("/film.mp4", range: "bytes=0-65535").isHit)
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func errorThatPassesIsNotNoticedInTheMiddleOfAFile() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectPart(try stage.get("/film.mp4", range: "bytes=0-65535"), 0..<65_536, of: film)
                stage.origin.script("/film.mp4") {
                    $0.status = 503; $0.statusTimes = 2
                }
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requestCount("/film.mp4") == 4)
            }
        }

        @Test func originThatRefusesConnectionsIsABadGatewayButNotForWhatIsCached() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.serve("/other.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                stage.origin.stop()
                let hit = try stage.get("/film.mp4")
                expectWhole(hit, film)
                #expect(hit.isHit)
                expectOneLine(try stage.get("/other.mp4"), status: 502)
                #expect(try stage.get("/other.mp4", method: "HEAD").status == 502)
            }
        }

        @Test func originThatDropsTheConnectionOnceIsAskedAgain() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.closesBeforeHead = true }
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        // MARK: What is not to be stored

        @Test(arguments: ["no-store", "private, No-Store, max-age=9"])
        func fileThatMustNotBeStoredPasses(control: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.headers = [("Cache-Control", control)] }
                for _ in 1...2 {
                    let response = try stage.get("/film.mp4")
                    expectWhole(response, film)
                    #expect(response.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; detail=\"no-store\"")
                    #expect(response.headers["Cache-Control"] == control)
                }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1999999"), 1_000_000..<2_000_000, of: film)
                expectPart(try stage.get("/film.mp4", range: "bytes=-1000"), film.size - 1000..<film.size, of: film)
                #expect(stage.origin.requestCount("/film.mp4") == 4)
                #expect(stage.dataFiles.isEmpty)
            }
        }

        @Test func playersOfAFileThatMustNotBeStoredHaveATransferEach() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.headers = [("Cache-Control", "no-store")]; $0.holdHead = true
                }
                let players = try Background { try concurrently(8) { _ in try stage.get("/film.mp4") } }
                try stage.waitForStats("7 collapsed requests") { $0[\.collapsed] == 7 }
                stage.origin.release("/film.mp4")
                let responses = try players.value()
                for response in responses { expectWhole(response, film) }
                #expect(responses.allSatisfy { $0.cacheStatus.hasPrefix("reelcache; fwd=uri-miss; fwd-status=200") })
                #expect(try stage.stats[\.misses] == 8)
                #expect(stage.origin.requestCount("/film.mp4") == 8)
            }
        }

        // MARK: Unknown lengths

        enum Framing: CaseIterable, Sendable {
            case chunked, closeDelimited

            func script(_ behaviour: inout ScriptedOrigin.Behaviour) {
                switch self {
                case .chunked: behaviour.chunkedEncoding = true
                case .closeDelimited: behaviour.closeDelimited = true
                }
            }
        }

        @Test(arguments: Framing.allCases, ["1.0", "1.1"])
        func fileOfUnknownLengthPassesAndIsCachedAtItsEnd(framing: Framing, version: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { framing.script(&$0) }
                let player = try stage.player()
                let first = try player.get(stage.target("/film.mp4"), version: version)
                #expect(first.status == 200)
                #expect(first.headers["Content-Length"] == nil)
                #expect(first.headers["Transfer-Encoding"] == (version == "1.1" ? "chunked" : nil))
                #expect(film.difference(first.body, from: 0..<film.size) == nil)
                let second = try stage.get("/film.mp4")
                expectWhole(second, film)
                #expect(second.isHit)
                expectPart(try stage.get("/film.mp4", range: "bytes=-1000"), film.size - 1000..<film.size, of: film)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test func playersOfOneFileOfUnknownLengthShareItsTransfer() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.chunkedEncoding = true; $0.stallAfter = 3_000_000
                }
                let (first, _) = try stage.playerOf("/film.mp4")
                #expect(try first.difference(from: film, in: 0..<3_000_000) == nil)
                let (second, _) = try stage.playerOf("/film.mp4")
                #expect(try second.difference(from: film, in: 0..<3_000_000) == nil)
                stage.origin.release("/film.mp4")
                for player in [first, second] {
                    #expect(try player.difference(from: film, in: 3_000_000..<film.size) == nil)
                    let isAtEnd = try player.readBody(upTo: 1).isEmpty
                    #expect(isAtEnd)
                }
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test(arguments: [true, false])
        func fileOfUnknownLengthThatBreaksOffIsCutAndNotCached(hasValidators: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, etag: hasValidators ? "\"v1\"" : nil)
                stage.origin.script("/film.mp4") {
                    $0.chunkedEncoding = true; $0.cutAfter = 3_000_000; $0.cutTimes = 100
                }
                expectCut { try stage.get("/film.mp4") }
                stage.origin.script("/film.mp4") { $0.cutAfter = nil }
                let response = try stage.get("/film.mp4")
                #expect(film.difference(response.body, from: 0..<film.size) == nil)
                let again = try stage.get("/film.mp4")
                expectWhole(again, film)
                #expect(again.isHit)
            }
        }

        @Test func fileOfUnknownLengthThatItsPlayerLeftIsFetchedAnew() async throws {
            try await scenario {
                $0.tuning.fill.lastChunkSeconds = 0.05
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.chunkedEncoding = true; $0.stallAfter = 1_000_000
                }
                let (player, _) = try stage.playerOf("/film.mp4")
                #expect(try player.difference(from: film, in: 0..<1_000_000) == nil)
                player.close()
                try stage.origin.waitForAbort("/film.mp4")
                stage.origin.release("/film.mp4")
                let response = try stage.get("/film.mp4")
                #expect(film.difference(response.body, from: 0..<film.size) == nil)
            }
        }

        @Test func bodyWithoutEndPassesAndIsNotStored() async throws {
            try await scenario {
                $0.tuning.fill.longestUnknownLength = 4_000_000
            } _: { stage in
                let stream = Media(seed: 40, size: 1_000_000_000_000)
                stage.origin.serve("/live", stream)
                stage.origin.script("/live") { $0.endless = true }
                let (player, head) = try stage.playerOf("/live")
                #expect(head.status == 200 && head.headers["Content-Length"] == nil)
                #expect(try player.difference(from: stream, in: 0..<16_000_000) == nil)
                player.close()
                try stage.origin.waitForAbort("/live")
                try stage.waitForStats("an empty cache") { $0[\.openFetches] == 0 && $0[\.size] < 1_000_000 }
                #expect(stage.dataFiles.isEmpty)
            }
        }

        // MARK: Ranges that the origin gets wrong

        @Test(arguments: [0, 100_000, 2_000_000, 4_999_999] as [Int64], [true, false])
        func seekIntoAFileOfAnOriginWithoutRangesIsAPartAllTheSame(offset: Int64, isKnown: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                if isKnown { _ = try stage.get("/film.mp4", range: "bytes=0-0") }
                stage.origin.script("/film.mp4") { $0.ignoresRange = true }
                let range = offset..<min(offset + 100_000, film.size)
                expectPart(try stage.get("/film.mp4", range: range.rangeField), range, of: film)
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requestCount("/film.mp4") <= 4)
                #expect(stage.origin.requests("/film.mp4").last?.status == 200)
            }
        }

        /// What comes before the client's range is not dropped: it gets the whole.
        @Test func rangeOfWhatIsNotStoredAndHasNoLengthIsTheWhole() async throws {
            try await scenario { stage in
                for place in 0..<20 {
                    let path = "/film\(place).mp4"
                    stage.origin.serve(path, film)
                    stage.origin.script(path) {
                        ($0.ignoresRange, $0.chunkedEncoding) = (true, true)
                        $0.headers = [("Cache-Control", "no-store")]
                    }
                    let response = try stage.get(path, range: "bytes=2000000-")
                    #expect(response.status == 200 && film.difference(response.body, from: 0..<film.size) == nil)
                }
            }
        }

        @Test(
            arguments: [
                .shifted(by: 1), .shifted(by: 65_536), .shifted(by: -65_536), .endShifted(by: 1), .endShifted(by: -1),
                .missing, .value("bytes garbage"), .value("bytes 9-5/5000000"),
                .value("items 1048576-1114111/5000000"), .unknownTotal, .total(5_000_001), .total(1_200_000),
                .total(10),
            ] as [ScriptedOrigin.ContentRangeFault], [true, false])
        func wrongContentRangeIsNeverAWrongByte(fault: ScriptedOrigin.ContentRangeFault, isKnown: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                if isKnown { _ = try stage.get("/film.mp4", range: "bytes=0-0") }
                stage.origin.script("/film.mp4") { $0.wrongContentRange = fault }
                let (range, player): (Range<Int64>, RawClient) = (1_048_576..<1_114_112, try stage.player())
                do {
                    let response = try player.get(stage.target("/film.mp4"), range: range.rangeField)
                    if response.status == 206 {
                        #expect(response.headers["Content-Range"]?.hasPrefix("bytes 1048576-1114111/") == true)
                        #expect(film.difference(response.body, from: range) == nil)
                    } else {
                        expectOneLine(response, status: 502)
                    }
                } catch let error as RawClient.ResponseError where error.isCut {
                    #expect(film.firstMismatch(player.partialBody, at: range.lowerBound) == nil)
                }
                // Nothing of it is left behind.
                stage.origin.script("/film.mp4") { $0.wrongContentRange = nil }
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test(
            arguments: [.shifted(by: 1), .shifted(by: 65_536), .missing, .value("bytes garbage")]
                as [ScriptedOrigin.ContentRangeFault], [true, false])
        func partThatCannotBeLocatedLeadsToTheWhole(fault: ScriptedOrigin.ContentRangeFault, isKnown: Bool) async throws
        {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                if isKnown { _ = try stage.get("/film.mp4", range: "bytes=0-0") }
                stage.origin.script("/film.mp4") { $0.wrongContentRange = fault }
                let range: Range<Int64> = 1_048_576..<1_114_112
                expectPart(try stage.get("/film.mp4", range: range.rangeField), range, of: film)
                #expect(stage.origin.requests("/film.mp4").last?.headers["Range"] == nil)
                #expect(stage.origin.requests("/film.mp4").last?.headers["If-Range"] == nil)
            }
        }

        // RFC 9110 §14.4 allows it; without a length there is nothing to tell the player but the part.
        @Test(arguments: [0, 1_048_576] as [Int64])
        func partOfAFileWhoseLengthTheOriginKeepsToItselfReachesThePlayer(offset: Int64) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.wrongContentRange = .unknownTotal }
                let range = offset..<offset + 1000
                let response = try stage.get("/film.mp4", range: range.rangeField)
                #expect(response.status == 206)
                #expect(response.headers["Content-Range"] == "bytes \(offset)-\(offset + 999)/*")
                #expect(film.difference(response.body, from: range) == nil)
            }
        }

        /// The file may end where the part does: what lies beyond is no other bytes.
        @Test(arguments: ["bytes=1000-1099", "bytes=1000-"])
        func whatIsNotInSuchAPartIsNotAnswered(range: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Media(seed: 4, size: 1000))
                stage.origin.script("/film.mp4") { $0.wrongContentRange = .unknownTotal }
                try #expect(stage.get("/film.mp4", range: range).status == 416)
            }
        }

        /// Its end is not that of the file.
        @Test func brokenBodyWithoutALengthIsContinuedInSuchParts() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    ($0.chunkedEncoding, $0.cutAfter) = (true, 300_000)
                    ($0.wrongContentRange, $0.longestPart) = (.unknownTotal, film.size / 3)
                }
                let response = try stage.get("/film.mp4")
                #expect(response.status == 200 && response.body.count == film.size)
                #expect(film.difference(response.body, from: 0..<film.size) == nil)
                stage.origin.stop()
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func conditionsHoldForSuchAPartToo() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.wrongContentRange = .unknownTotal }
                try #expect(stage.get("/film.mp4", headers: [("If-None-Match", "\"v1\"")]).status == 304)
                try #expect(
                    stage.get("/film.mp4", range: "bytes=0-9", headers: [("If-Match", "\"v0\"")]).status == 412)
            }
        }

        // MARK: Without validators

        @Test func fileWithoutValidatorsIsCachedWhereItComesAsAWhole() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.noValidators = true }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1999999"), 1_000_000..<2_000_000, of: film)
                #expect(stage.dataFiles.isEmpty)
                expectWhole(try stage.get("/film.mp4"), film)
                expectPart(try stage.get("/film.mp4", range: "bytes=-9"), film.size - 9..<film.size, of: film)
                let again = try stage.get("/film.mp4")
                expectWhole(again, film)
                #expect(again.isHit)
                #expect(stage.origin.requestCount("/film.mp4") == 2)
            }
        }

        @Test func seekIntoAFileWithoutValidatorsThatIsStillComingIsRight() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.noValidators = true; $0.stallAfter = 100_000
                }
                let (player, _) = try stage.playerOf("/film.mp4")
                #expect(try player.difference(from: film, in: 0..<100_000) == nil)
                let seek = try Background { try stage.get("/film.mp4", range: "bytes=4000000-4099999") }
                try stage.waitForStats("two requests") { $0[\.requests] == 2 }
                stage.origin.release("/film.mp4")
                expectPart(try seek.value(), 4_000_000..<4_100_000, of: film)
                #expect(try player.difference(from: film, in: 100_000..<film.size) == nil)
            }
        }

        @Test func fileWithoutValidatorsThatItsPlayerLeftIsFetchedAnew() async throws {
            try await scenario {
                $0.tuning.fill.lastChunkSeconds = 0.05
            } _: { stage in
                let other = Media(seed: 41, size: film.size)
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.noValidators = true; $0.stallAfter = 1_000_000
                }
                let (player, _) = try stage.playerOf("/film.mp4")
                #expect(try player.difference(from: film, in: 0..<1_000_000) == nil)
                player.close()
                try stage.origin.waitForAbort("/film.mp4")
                // Nobody could tell that it is another one.
                stage.origin.script("/film.mp4") {
                    $0.media = other; $0.stallAfter = nil
                }
                expectWhole(try stage.get("/film.mp4"), other)
            }
        }

        // MARK: Broken transfers

        @Test(arguments: [1, 65_536, 1_000_000, 4_999_999] as [Int64], [false, true])
        func transferThatBreaksIsResumedUnnoticed(cut: Int64, withReset: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.cutAfter = cut; $0.cutsWithReset = withReset
                }
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requestCount("/film.mp4") == 2)
                if !withReset { #expect(stage.origin.requests("/film.mp4").last?.range == cut..<film.size) }
                #expect(try stage.get("/film.mp4").isHit)
            }
        }

        @Test func transferThatBreaksAgainAndAgainIsResumedForAsLongAsItGetsFurther() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, etag: nil, lastModified: date)
                stage.origin.script("/film.mp4") {
                    $0.cutAfter = 400_000; $0.cutTimes = 12
                }
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requestCount("/film.mp4") == 13)
            }
        }

        @Test func transferThatBreaksAtAnOriginWithoutRangesIsResumedUnnoticed() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.cutAfter = 3_000_000; $0.ignoresRange = true
                }
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requests("/film.mp4").map(\.status) == [200, 200])
            }
        }

        @Test func transferThatGoesNoFurtherCutsThePlayer() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 1_000_000 }
                let (player, _) = try stage.playerOf("/film.mp4")
                #expect(try player.difference(from: film, in: 0..<1_000_000) == nil)
                stage.origin.stop()
                #expect(throws: RawClient.ResponseError.truncated(received: 1_000_000, expected: film.size)) {
                    try player.readBody(upTo: 1)
                }
            }
        }

        @Test func transferWithoutValidatorsThatBreaksCutsThePlayer() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.noValidators = true; $0.cutAfter = 3_000_000
                }
                let player = try stage.player()
                expectCut { try player.get(stage.target("/film.mp4")) }
                #expect(film.firstMismatch(player.partialBody, at: 0) == nil)
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        // MARK: Another version

        @Test(arguments: [film.size, 6_000_000, 4_000_000] as [Int64])
        func answerIsOfOneVersionWhenTheOriginHasAnother(newSize: Int64) async throws {
            try await scenario { stage in
                let new = Media(seed: 42, size: newSize)
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.changeAfterRequests = (1, new, "\"v2\"") }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1999999"), 1_000_000..<2_000_000, of: film)
                // What is cached still stands for the old one; the first gap shows that it is gone.
                expectPart(try stage.get("/film.mp4", range: "bytes=3000000-3099999"), 3_000_000..<3_100_000, of: new)
                let whole = try stage.get("/film.mp4")
                expectWhole(whole, new)
                #expect(whole.headers["ETag"] == "\"v2\"")
            }
        }

        @Test func playerIsCutWhereTheOriginChangesInTheMiddle() async throws {
            try await scenario { stage in
                let new = Media(seed: 43, size: film.size)
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.changeAfterRequests = (1, new, "\"v2\"") }
                _ = try stage.get("/film.mp4", range: "bytes=0-999999")
                let player = try stage.player()
                expectCut { try player.get(stage.target("/film.mp4")) }
                #expect(film.firstMismatch(player.partialBody, at: 0) == nil)
                expectWhole(try stage.get("/film.mp4"), new)
            }
        }

        @Test func transferThatBreaksAndMeetsAnotherVersionCutsThePlayer() async throws {
            try await scenario { stage in
                let new = Media(seed: 44, size: film.size)
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.cutAfter = 1_000_000; $0.changeAfterRequests = (1, new, "\"v2\"")
                }
                let player = try stage.player()
                expectCut { try player.get(stage.target("/film.mp4")) }
                #expect(film.firstMismatch(player.partialBody, at: 0) == nil)
                expectWhole(try stage.get("/film.mp4"), new)
            }
        }

        @Test func eachAnswerIsOfOneVersionWhileTheOriginChangesUnderManyPlayers() async throws {
            try await scenario { stage in
                let versions = (0..<6).map { Media(seed: 50 + UInt64($0), size: 2_000_000) }
                stage.origin.serve("/film.mp4", versions[0], etag: "\"0\"")
                let wrong = try concurrently(8) { index -> [String] in
                    var random = SplitMix64(seed: UInt64(index))
                    return try (0..<25).compactMap { round in
                        if index == 0, round % 5 == 4 {
                            let next = round / 5 + 1
                            stage.origin.script("/film.mp4") { ($0.media, $0.etag) = (versions[next], "\"\(next)\"") }
                        }
                        let start = Int64.random(in: 0..<1_900_000, using: &random)
                        let range = start..<Int64.random(in: start + 1...2_000_000, using: &random)
                        let player = try stage.player()
                        do {
                            let response = try player.get(stage.target("/film.mp4"), range: range.rangeField)
                            guard response.status == 206 else {
                                return response.status == 502 ? nil : "status \(response.status): \(response.text)"
                            }
                            guard let tag = response.headers["ETag"]?.dropFirst().dropLast(), let version = Int(tag)
                            else { return "no entity tag" }
                            return versions[version].difference(response.body, from: range)
                        } catch let error as RawClient.ResponseError where error.isCut {
                            return nil
                        }
                    }
                }
                #expect(wrong.flatMap { $0 } == [])
            }
        }
    }
}
