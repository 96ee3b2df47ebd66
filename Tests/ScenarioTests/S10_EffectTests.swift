import CachePolicy
import ControlAPI
import DiskCache
import Glibc
import Reelcache
import Testing
import TestSupport

private let film = Media(seed: 17, size: 3_000_000)
private let remake = Media(seed: 18, size: 3_100_000)

/// Where a film is, so far as a rule is concerned.
private enum Place: CaseIterable {
    /// Where the rule says.
    case ruled
    /// At a path or a host of which the rule says nothing.
    case otherPath, otherHost

    /// On the origin; another one for each, so that each can be counted and scripted.
    var path: String {
        switch self {
        case .ruled: "/vod/film.mp4"
        case .otherPath: "/film.mp4"
        case .otherHost: "/vod/other.mp4"
        }
    }

    static let beside: [Place] = [.otherPath, .otherHost]
}

private extension Stage {
    func target(_ place: Place) -> String {
        place == .otherHost ? "/http/localhost:\(origin.port)\(place.path)" : target(place.path)
    }

    func get(_ place: Place, range: String? = nil, headers: [(String, String)] = [], method: String = "GET") throws
        -> RawClient.Response
    {
        try RawClient.get(port: proxy.port, path: target(place), range: range, headers: headers, method: method)
    }

    /// Serves the film everywhere.
    func serve(_ media: Media = film, _ cacheControl: String? = nil, etag: String = "\"v1\"") {
        for place in Place.allCases {
            origin.serve(place.path, media, etag: etag)
            origin.script(place.path) { $0.headers = cacheControl.map { [("Cache-Control", $0)] } ?? [] }
        }
    }

    func requests(_ place: Place) -> Int { origin.requestCount(place.path) }

    /// What a list of the cache shows.
    func listed() throws -> [CachedResource] { try read(ResourceListing.self, "/resources").resources }

    func isListed(_ place: Place) throws -> Bool {
        try listed().contains { $0.urlText.hasSuffix(":\(origin.port)\(place.path)") }
    }

    /// Waits until the list shows something of a resource.
    func waitUntilListed(_ place: Place, _ what: String, _ predicate: (CachedResource) -> Bool) throws {
        try eventually("\(what) of \(place.path) in the list", instead: "\(try listed())") {
            try listed().contains { $0.urlText.hasSuffix(":\(origin.port)\(place.path)") && predicate($0) }
        }
    }
}

/// Plays a scenario with one rule, for one path of one host.
private func ruled(
    _ change: @escaping @Sendable (inout ResourceRule) -> Void, fill: FillMode = .ahead(bytes: 32 << 20),
    _ story: @escaping @Sendable (Stage) throws -> Void
) async throws {
    try await scenario {
        $0.allow = ["127.0.0.1", "localhost"]
        $0.configure {
            var rule = ResourceRule(hosts: ["127.0.0.1"], paths: ["/vod/*"])
            change(&rule)
            ($0.rules, $0.fill) = ([rule], fill)
        }
    } _: {
        try story($0)
    }
}

/// What rules do to what they match, and to nothing else.
extension Scenarios {
    @Suite struct S10Effects {
        // MARK: bypass

        @Test func whatIsBypassedIsNeverStored() async throws {
            try await ruled {
                $0.bypass = true
            } _: { stage in
                stage.serve()
                for _ in 0..<2 {
                    let whole = try stage.get(.ruled)
                    expectWhole(whole, film)
                    #expect(whole.cacheStatus == "reelcache; fwd=bypass; fwd-status=200")
                    let part = try stage.get(.ruled, range: "bytes=70000-99999")
                    expectPart(part, 70_000..<100_000, of: film)
                    #expect(part.cacheStatus == "reelcache; fwd=bypass; fwd-status=206")
                    let head = try stage.get(.ruled, method: "HEAD")
                    #expect(head.status == 200 && head.cacheStatus == "reelcache; fwd=bypass; fwd-status=200")
                }
                #expect(stage.requests(.ruled) == 6)
                #expect(try !stage.isListed(.ruled))
                for place in Place.beside {
                    expectWhole(try stage.get(place), film)
                    #expect(try stage.get(place).isHit && stage.isListed(place))
                }
            }
        }

        @Test func whatIsBypassedIsNotAnsweredFromWhatIsStored() async throws {
            try await ruled { _ in
            } _: { stage in
                stage.serve(film, "max-age=1000")
                for place in Place.allCases { _ = try stage.get(place) }
                stage.serve(remake, "max-age=1000", etag: "\"v2\"")
                try stage.proxy.cache.reconfigure {
                    $0.rules = [
                        ResourceRule(hosts: ["127.0.0.1"], paths: ["/vod/*"]) { $0.bypass = true }
                    ]
                }
                let passed = try stage.get(.ruled)
                expectWhole(passed, remake)
                #expect(passed.cacheStatus == "reelcache; fwd=bypass; fwd-status=200")
                #expect(try stage.get(.ruled, method: "HEAD").headers["ETag"] == "\"v2\"")
                for place in Place.beside {
                    let stored = try stage.get(place)
                    expectWhole(stored, film)
                    #expect(stored.isHit)
                }
                // Without an origin there is nothing to play.
                stage.origin.stop()
                #expect(try stage.get(.ruled).status == 502)
                // What was stored before is as it was.
                try stage.proxy.cache.reconfigure { $0.rules = [] }
                let stored = try stage.get(.ruled)
                expectWhole(stored, film)
                #expect(stored.isHit)
            }
        }

        // MARK: ttl

        @Test(arguments: ["no-cache", "max-age=0", "max-age=0, must-revalidate", "max-age=5000"])
        func lifetimeOfARuleGoesBeforeTheOrigins(cacheControl: String) async throws {
            try await ruled {
                $0.ttl = .seconds(100)
            } _: { stage in
                stage.serve(film, cacheControl)
                for place in Place.allCases { _ = try stage.get(place) }
                stage.wait(seconds: 90)
                let fresh = try stage.get(.ruled)
                expectWhole(fresh, film)
                #expect(fresh.isHit && stage.requests(.ruled) == 1)
                let isLong = cacheControl == "max-age=5000"
                for place in Place.beside { #expect(try stage.get(place).isHit == isLong) }

                stage.wait(seconds: 20)
                let stale = try stage.get(.ruled)
                expectWhole(stale, film)
                #expect(stale.cacheStatus == "reelcache; fwd=stale; fwd-status=304" && stage.requests(.ruled) == 2)
                #expect(try stage.get(.ruled).isHit)
                for place in Place.beside { #expect(try stage.get(place).isHit == isLong) }
            }
        }

        // MARK: ignore_no_store

        @Test(arguments: [true, false])
        func whatMayNotBeStoredIs(byOrigin: Bool) async throws {
            try await ruled {
                $0.ignoresNoStore = true
            } _: { stage in
                stage.serve(film, byOrigin ? "no-store" : nil)
                let wish = byOrigin ? [] : [("Cache-Control", "no-store")]
                let first = try stage.get(.ruled, headers: wish)
                expectWhole(first, film)
                #expect(first.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; stored")
                let again = try stage.get(.ruled)
                expectWhole(again, film)
                #expect(try again.isHit && stage.isListed(.ruled))
                for place in Place.beside {
                    let first = try stage.get(place, headers: wish)
                    expectWhole(first, film)
                    #expect(
                        first.cacheStatus
                            == "reelcache; fwd=uri-miss; fwd-status=200; detail=\"\(byOrigin ? "no-store" : "request-no-store")\""
                    )
                    #expect(try !stage.isListed(place))
                    #expect(try !stage.get(place).isHit)
                }
            }
        }

        // MARK: play_stale

        @Test(arguments: ["max-age=60, must-revalidate", "no-cache"], [503, nil])
        func whatItsOriginForbidsPlaysWithoutIt(cacheControl: String, status: Int?) async throws {
            try await ruled {
                $0.playsStale = true
            } _: { stage in
                stage.serve(film, cacheControl)
                for place in Place.allCases { _ = try stage.get(place) }
                stage.wait(seconds: 1000)
                if let status {
                    for place in Place.allCases { stage.origin.script(place.path) { $0.status = status } }
                } else {
                    stage.origin.stop()
                }
                for method in ["GET", "HEAD"] {
                    let played = try stage.get(.ruled, method: method)
                    if method == "GET" { expectWhole(played, film) }
                    #expect(played.status == 200 && played.headers["Content-Length"] == "3000000")
                    #expect(
                        played.cacheStatus.hasPrefix(
                            status == nil
                                ? "reelcache; fwd=stale; ttl=-" : "reelcache; fwd=stale; fwd-status=503; ttl=-"))
                    for place in Place.beside { expectRefused(try stage.get(place, method: method), method) }
                }
            }
        }

        private func expectRefused(_ response: RawClient.Response, _ method: String) {
            if method == "GET" { expectOneLine(response, status: 504) } else { #expect(response.status == 504) }
        }

        // MARK: fill

        @Test func whatARuleFillsIsFetchedWhole() async throws {
            try await ruled({ $0.fill = .whole }, fill: .read) { stage in
                stage.serve()
                for place in Place.allCases {
                    expectPart(try stage.get(place, range: "bytes=1000000-1000099"), 1_000_000..<1_000_100, of: film)
                }
                try stage.waitUntilListed(.ruled, "the end") { $0.isComplete }
                try stage.catchUp()
                #expect(stage.origin.bytesSent(Place.ruled.path) == film.size)
                for place in Place.beside { #expect(stage.origin.bytesSent(place.path) == 65_536) }
            }
        }

        @Test func whatARuleReadsIsNotFetchedAhead() async throws {
            try await ruled({ $0.fill = .read }, fill: .whole) { stage in
                stage.serve()
                for place in Place.allCases { _ = try stage.get(place, range: "bytes=1000000-1000099") }
                for place in Place.beside { try stage.waitUntilListed(place, "the end") { $0.isComplete } }
                try stage.catchUp()
                #expect(stage.origin.bytesSent(Place.ruled.path) == 65_536)
            }
        }

        // MARK: pin

        @Test func whatARuleStoresIsPinnedWhenItsTransferHasEnded() async throws {
            try await ruled {
                $0.pin = true
            } _: { stage in
                stage.serve()
                for place in Place.beside { expectWhole(try stage.get(place), film) }
                stage.origin.script(Place.ruled.path) { $0.stallAfter = 1_000_000 }
                let player = try stage.player()
                try player.send(player.request(stage.target(.ruled)))
                #expect(try player.readHead().status == 200)
                #expect(try player.difference(from: film, in: 0..<900_000) == nil)
                try stage.waitUntilListed(.ruled, "its begin") { !$0.isComplete }
                stage.origin.release(Place.ruled.path)
                #expect(try player.difference(from: film, in: 900_000..<film.size) == nil)
                try stage.waitUntilListed(.ruled, "a pin") { $0.isPinned && $0.isComplete }
                // Had they been pinned, they would have been before it.
                #expect(try stage.listed().filter(\.isPinned).count == 1)
            }
        }

        @Test func aPinOfARuleOutlivesThatRule() async throws {
            try await ruled {
                $0.pin = true
            } _: { stage in
                stage.serve()
                expectPart(try stage.get(.ruled, range: "bytes=0-99"), 0..<100, of: film)
                try stage.waitUntilListed(.ruled, "a pin") { $0.isPinned }
                try stage.proxy.cache.reconfigure { $0.rules = [] }
                try stage.restart()
                #expect(try stage.listed().map(\.isPinned) == [true])
            }
        }

        // MARK: max_object

        @Test(arguments: [(2_999_999, false), (3_000_000, true)])
        func whatIsLongerThanARuleSaysIsPassedOn(limit: Int64, isStored: Bool) async throws {
            try await ruled {
                $0.maxObject = limit
            } _: { stage in
                stage.serve()
                for _ in 0..<2 {
                    let (part, whole) = (try stage.get(.ruled, range: "bytes=70000-99999"), try stage.get(.ruled))
                    expectPart(part, 70_000..<100_000, of: film)
                    expectWhole(whole, film)
                    guard !isStored else { continue }
                    #expect(part.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=206; detail=\"max-object\"")
                    #expect(whole.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; detail=\"max-object\"")
                }
                #expect(try stage.get(.ruled).isHit == isStored)
                #expect(try stage.isListed(.ruled) == isStored)
                for place in Place.beside {
                    _ = try stage.get(place)
                    #expect(try stage.get(place).isHit)
                }
            }
        }

        @Test(arguments: [(1_000_000, false), (2_999_999, false), (3_000_000, true)], [true, false])
        func whatTurnsOutToBeLongerIsNotStored(sample: (limit: Int64, isStored: Bool), isChunked: Bool) async throws {
            try await ruled {
                $0.maxObject = sample.limit
            } _: { stage in
                stage.serve()
                for place in Place.allCases {
                    stage.origin.script(place.path) {
                        ($0.chunkedEncoding, $0.closeDelimited) = (isChunked, !isChunked)
                    }
                }
                let first = try stage.get(.ruled)
                #expect(first.status == 200 && film.difference(first.body, from: 0..<film.size) == nil)
                try stage.catchUp()
                let again = try stage.get(.ruled)
                #expect(again.isHit == sample.isStored && film.difference(again.body, from: 0..<film.size) == nil)
                try stage.catchUp()
                #expect(try stage.isListed(.ruled) == sample.isStored)
                for place in Place.beside {
                    _ = try stage.get(place)
                    try stage.catchUp()
                    #expect(try stage.get(place).isHit)
                }
            }
        }
    }
}
