import Downloads
import Reelcache
import Testing
import TestSupport

private let film = Media(seed: 211, size: 3_000_000)
private let path = "/film.mp4"
private let page = Array("<html><title>Welcome to our hotel</title></html>\n".utf8)

extension Stage {
    /// From now on something on the way answers in the origin's place.
    fileprivate func enterPortal(_ path: String = path, type: String = "text/html; charset=utf-8") {
        origin.script(path) {
            ($0.media, $0.body, $0.etag, $0.lastModified) = (nil, page, nil, nil)
            ($0.contentType, $0.ignoresRange, $0.headers) = (type, true, [("Cache-Control", "max-age=600")])
        }
    }

    fileprivate func leavePortal(_ path: String = path) {
        origin.serve(path, film)
        origin.script(path) { ($0.ignoresRange, $0.headers) = (false, [("Cache-Control", "max-age=60")]) }
    }
}

/// A web page comes where media was asked for.
extension Scenarios {
    @Suite struct S21Page {
        private func expectPage(_ response: RawClient.Response, sourceLocation: SourceLocation = #_sourceLocation) {
            #expect(
                response.body.elementsEqual(page) && response.headers["Content-Type"]?.hasPrefix("text/html") == true,
                sourceLocation: sourceLocation)
            #expect(
                response.cacheStatus.contains("detail=\"page\"") || response.cacheStatus.contains("detail=page"),
                "\(response.cacheStatus)", sourceLocation: sourceLocation)
        }

        @Test(arguments: [nil, "bytes=0-"])
        func pageIsPassedOnAndNotStored(range: String?) async throws {
            try await scenario { stage in
                stage.enterPortal()
                for _ in 0..<2 { expectPage(try stage.get(path, range: range)) }
                #expect(stage.origin.requestCount(path) == 2)
                stage.leavePortal()
                expectWhole(try stage.get(path), film)
                #expect(try stage.get(path).isHit)
            }
        }

        @Test func urlThatSaysNothingIsThatOfMediaWhereABrowsersPlayerAsks() async throws {
            try await scenario { stage in
                stage.enterPortal("/watch")
                expectPage(try stage.get("/watch", headers: [("Sec-Fetch-Dest", "video")]))
                // As a document it may be what it is.
                _ = try stage.get("/watch", headers: [("Sec-Fetch-Dest", "document")])
                #expect(try stage.get("/watch").isHit)
            }
        }

        @Test(arguments: [nil, "bytes=1000000-1000999"])
        func filmThatItsOriginCallsAPageIsKept(range: String?) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film, contentType: "text/html")
                for isHit in [false, true] {
                    let response = try stage.get(path, range: range)
                    #expect(response.isHit == isHit && response.headers["Content-Type"] == "text/html")
                    if range == nil { expectWhole(response, film) }
                    if range != nil { expectPart(response, 1_000_000..<1_001_000, of: film) }
                    try stage.catchUp()
                }
                #expect(try stage.download(path).complete().bytes == film.size)
            }
        }

        @Test func ruleMayStorePages() async throws {
            try await scenario {
                $0.configure { configuration in
                    var rule = ResourceRule()
                    rule.storesPages = true
                    configuration.rules = [rule]
                }
            } _: { stage in
                stage.enterPortal()
                _ = try stage.get(path)
                #expect(try stage.get(path).isHit)
            }
        }

        // It is neither the film's next version nor the end of the stored one. `/watch` is known to be media by what is
        // stored.
        @Test(arguments: [path, "/watch"], ["GET", "HEAD"])
        func pageLeavesWhatIsStored(path: String, method: String) async throws {
            try await scenario { stage in
                stage.leavePortal(path)
                expectWhole(try stage.get(path), film)
                stage.wait(seconds: 1000)
                stage.enterPortal(path)
                let response = try stage.get(path, method: method)
                #expect(response.status == 200 && response.headers["Content-Length"] == "\(film.size)")
                #expect(response.cacheStatus.hasPrefix("reelcache; fwd=stale; ttl=-"), "\(response.cacheStatus)")
                if method == "GET" { expectWhole(response, film) }
                stage.leavePortal(path)
                let again = try stage.get(path)
                expectWhole(again, film)
                #expect(again.cacheStatus.contains("fwd=stale; fwd-status=304"), "\(again.cacheStatus)")
            }
        }

        @Test func pageIsPassedOnWhereWhatIsStoredMustNotPlay() async throws {
            try await scenario { stage in
                stage.leavePortal()
                stage.origin.script(path) { $0.headers = [("Cache-Control", "no-cache")] }
                expectWhole(try stage.get(path), film)
                stage.enterPortal()
                expectPage(try stage.get(path))
                stage.leavePortal()
                #expect(try stage.get(path).cacheStatus.contains("fwd-status=304"))
            }
        }

        @Test func pageInThePlaceOfAGapLeavesTheRest() async throws {
            try await scenario { stage in
                stage.leavePortal()
                expectPart(try stage.get(path, range: "bytes=0-65535"), 0..<65_536, of: film)
                try stage.catchUp()
                stage.enterPortal()
                let response = try stage.get(path, range: "bytes=2000000-2000999")
                expectOneLine(response, status: 502)
                #expect(response.text.contains("a web page (text/html) came in place of the media"), "\(response.text)")
                expectPart(try stage.get(path, range: "bytes=0-65535"), 0..<65_536, of: film)
                stage.leavePortal()
                expectPart(try stage.get(path, range: "bytes=2000000-2000999"), 2_000_000..<2_001_000, of: film)
            }
        }

        @Test func downloadThatGetsAPageFailsAndSaysSo() async throws {
            try await scenario { stage in
                stage.enterPortal()
                let fault = try #require(try stage.download(path).fault())
                #expect(
                    fault.kind == .final && fault.message.contains("a web page came in place of the media"), "\(fault)")
                stage.leavePortal()
                #expect(try stage.download(path).complete().bytes == film.size)
            }
        }

        @Test func downloadThatMeetsAPageOnTheWayKeepsWhatItHas() async throws {
            try await scenario { stage in
                stage.leavePortal()
                _ = try stage.download(path, first: 1_000_000).complete()
                stage.enterPortal()
                #expect(
                    try stage.download(path).fault()?.message.contains("a web page came in place of the media") == true)
                stage.leavePortal()
                #expect(try stage.download(path).complete().bytes == film.size)
                #expect(stage.origin.requests(path).last?.range?.lowerBound ?? 0 >= 1_000_000)
            }
        }
    }
}
