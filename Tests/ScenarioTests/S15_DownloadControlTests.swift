import Administration
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import Foundation
import Testing
import TestSupport

@testable import Reelcache

private extension Stage {
    /// Orders downloads of these paths.
    func order(_ paths: String..., more: String = "", status: Int = 201) throws -> [Download] {
        let orders = paths.map { "{\"url\": \"\(origin.url($0))\"\(more)}" }.joined(separator: ", ")
        return try control("POST", "/downloads", body: "{\"downloads\": [\(orders)]}").decoded(
            DownloadList.self, status: status
        ).downloads
    }

    func listing(_ query: String = "") throws -> DownloadListing {
        try read(DownloadListing.self, "/downloads" + query)
    }

    /// The numbers of those that are listed, in order.
    func ids(_ query: String = "") throws -> [Int64] { try listing(query).downloads.map(\.id) }

    func change(_ query: String, _ body: String) throws -> [Download] {
        try control("PATCH", "/downloads?" + query, body: body).decoded(DownloadList.self).downloads
    }

    var configuration: ProxyConfiguration {
        var configuration = ProxyConfiguration()
        configuration.cacheDirectory = cache
        configuration.minFree = 1_000_000
        configuration.isOffline = true
        return configuration
    }
}

/// Nothing is fetched, so that downloads stay as they are.
private func offline(_ story: @escaping @Sendable (Stage) throws -> Void) async throws {
    try await scenario {
        $0.configure { $0.isOffline = true }
    } _: {
        try story($0)
    }
}

extension Scenarios {
    @Suite struct S15DownloadControl {
        // MARK: Orders

        /// A page with room for some shows those that ended last.
        @Test func listIsSortedByTheTimeOfTheEnd() async throws {
            try await scenario { stage in
                for (id, finished) in [(1, 300), (2, 100), (3, 300), (4, 200)] as [(Int64, Int64)] {
                    var report = Download.sample(id, .failed)
                    report.finished = Date(seconds: finished)
                    stage.snapshots.post(report)
                }
                stage.snapshots.post(.sample(5))
                #expect(try stage.ids("?state=failed") == [1, 2, 3, 4])
                #expect(try stage.ids("?state=failed&sort=ended") == [3, 1, 4, 2])
                #expect(try stage.ids("?state=failed&sort=ended&limit=2") == [3, 1])
                #expect(try stage.ids("?state=failed&sort=ended&limit=2&offset=2") == [4, 2])
                #expect(try stage.ids("?state=all&sort=ended").last == 5)
                let page = try stage.control("GET", "/downloads?state=failed&sort=ended&limit=1")
                #expect(try page.members["total"] as? Int == 4)
                expectRefusal(try stage.control("GET", "/downloads?sort=size"), 400, naming: "queue or ended")
            }
        }

        @Test func anOrderIsADownload() async throws {
            try await offline { stage in
                let more =
                    ", \"first\": \"5MB\", \"priority\": \"high\", \"connections\": 4, \"limit_rate\": 250000, \"category\": \"series\", \"pinned\": false"
                let report = try #require(try stage.order("/a.mp4", more: more).first)
                #expect(
                    report.urlText == stage.origin.url("/a.mp4") && !report.state.hasEnded && report.bytes == 0
                        && report.added.seconds > 0)
                #expect(
                    report.first == 5_000_000 && report.priority == .high && report.connections == 4
                        && report.limitRate == 250_000)
                #expect(report.category == "series" && !report.isPinned)
                let other = try #require(try stage.order("/b.mp4", more: ", \"limit_rate\": 0").first)
                #expect(
                    other.first == nil && other.priority == .normal && other.connections == 1 && other.limitRate == nil
                        && other.category == nil && other.isPinned)

                #expect(try stage.order("/a.mp4", more: more, status: 200).map(\.id) == [report.id])
                #expect(try stage.order("/b.mp4", "/c.mp4", status: 201).map(\.id) == [other.id, other.id + 1])
                let listing = try stage.control("GET", "/downloads", .nothing)
                #expect(try Set(listing.members.keys) == ["downloads", "summary", "total"])
                #expect(
                    try listing.decoded(DownloadListing.self).downloads.map(\.id).sorted() == [
                        report.id, other.id, other.id + 1,
                    ])
            }
        }

        @Test(arguments: [
            ("", 400, "send a JSON object such as {\"downloads\""), ("[]", 400, ""), ("{}", 400, ""),
            ("{\"downloads\": 5}", 400, ""), ("{\"downloads\": [5]}", 400, ""),
            ("{\"downloads\": []}", 422, "nothing to download"),
            ("{\"downloads\": [{}]}", 422, "downloads[0] has no url"),
            ("{\"downloads\": [GOOD, {\"url\": 5}]}", 422, "downloads[1].url is a media URL"),
            ("{\"downloads\": [GOOD, {\"url\": \"ftp://o.example/a\"}]}", 422, "ftp://o.example/a"),
            ("{\"downloads\": [GOOD], \"wait\": true}", 422, "there is no member wait here; the members are downloads"),
            (
                "{\"downloads\": [GOOD, {\"url\": \"http://o.example/\", \"limit\": 5}]}", 422,
                "there is no member limit in downloads[1]; the members are url and first and limit_rate"
            ),
            ("{\"downloads\": [GOOD, {\"url\": \"http://o.example/\", \"limitRate\": 5}]}", 422, "limitRate"),
            (
                "{\"downloads\": [{\"url\": \"http://o.example/\", \"first\": \"much\"}]}", 422,
                "downloads[0].first is a number of bytes"
            ),
            ("{\"downloads\": [{\"url\": \"http://o.example/\", \"first\": 0}]}", 422, "ask for 1 at least"),
            ("{\"downloads\": [{\"url\": \"http://o.example/\", \"first\": null}]}", 422, "downloads[0].first"),
            (
                "{\"downloads\": [{\"url\": \"http://o.example/\", \"limit_rate\": -1}]}", 422,
                "downloads[0].limit_rate is a number of bytes"
            ),
            (
                "{\"downloads\": [{\"url\": \"http://o.example/\", \"priority\": \"urgent\"}]}", 422,
                "downloads[0].priority is high, normal, low"
            ),
            ("{\"downloads\": [{\"url\": \"http://o.example/\", \"connections\": 17}]}", 422, "choose 1 to 16"),
            (
                "{\"downloads\": [{\"url\": \"http://o.example/\", \"connections\": \"2\"}]}", 422,
                "downloads[0].connections is a whole number"
            ),
            ("{\"downloads\": [{\"url\": \"http://o.example/\", \"category\": \"\"}]}", 422, "category"),
            (
                "{\"downloads\": [{\"url\": \"http://o.example/\", \"pinned\": \"yes\"}]}", 422,
                "downloads[0].pinned is true or false"
            ),
        ])
        func ordersAreTakenAllOrNone(body: String, status: Int, text: String) async throws {
            try await offline { stage in
                let good = "{\"url\": \"\(stage.origin.url("/a.mp4"))\"}"
                expectRefusal(
                    try stage.control("POST", "/downloads", body: body.replacing("GOOD", with: good)), status,
                    naming: text)
                #expect(try stage.ids("?state=all") == [])
            }
        }

        @Test func tooManyOrdersForARequestAreRefusedUnread() async throws {
            try await offline { stage in
                let client = try stage.player()
                let fields =
                    try stage.authorization() + [("Content-Length", "\((16 << 20) + 1)"), ("Expect", "100-continue")]
                try client.send(client.request("/api/v1/downloads", headers: fields, method: "POST"))
                expectRefusal(try client.readResponse(), 413)
            }
        }

        // MARK: Listing

        @Test func whatIsAskedForIsListed() async throws {
            try await offline { stage in
                let ids =
                    try stage.order("/a.mp4", "/b.mp4", "/c.mp4").map(\.id)
                    + stage.order("/d.mp4", more: ", \"category\": \"film\"").map(\.id)
                #expect(try stage.change("id=\(ids[0])", "{\"action\": \"cancel\"}").map(\.state) == [.cancelled])
                #expect(try stage.change("id=\(ids[1])", "{\"action\": \"pause\"}").map(\.state) == [.paused])
                #expect(try Set(stage.ids()) == Set(ids[1...]))
                #expect(try Set(stage.ids("?state=all")) == Set(ids))
                #expect(try stage.ids("?state=paused,cancelled") == [ids[1], ids[0]])
                #expect(try stage.ids("?state=failed") == [])
                #expect(try stage.ids("?category=film") == [ids[3]] && stage.ids("?category=fil") == [])
                #expect(try stage.ids("?id=\(ids[0]),\(ids[2]),99") == [ids[2], ids[0]])
                #expect(try stage.ids("?id=\(ids[0]),\(ids[2])&state=cancelled") == [ids[0]])
                let all = try stage.ids("?state=all")
                #expect(try stage.ids("?state=all&limit=2&offset=1") == Array(all[1...2]))
                let page = try stage.control("GET", "/downloads?state=all&limit=1&offset=9", .nothing)
                #expect(try page.members["total"] as? Int == 4 && page.decoded(DownloadListing.self).downloads == [])
                let summary = try stage.listing("?id=99").summary
                #expect(summary.paused == 1 && summary.waiting + summary.downloading == 2)
                #expect(try stage.control("HEAD", "/downloads", .nothing).status == 200)
            }
        }

        @Test(arguments: [
            "/downloads?state=done", "/downloads?state=", "/downloads?state=paused,", "/downloads?id=",
            "/downloads?id=1,,2", "/downloads?id=x", "/downloads?id=0",
            "/downloads?id=-1", "/downloads?limit=0", "/downloads?offset=-1", "/downloads?sort=size",
            "/downloads/settings?id=1", "/downloads/history?limit=0",
            "/downloads/history?state=lost", "/downloads/events?id=a", "/downloads/events?ended=maybe",
            "/downloads/events?since=3",
        ])
        func whatCannotBeAskedForIsRefused(path: String) async throws {
            try await offline { expectRefusal(try $0.control("GET", path), 400) }
        }

        // MARK: Changes

        @Test func aDownloadIsPausedResumedCancelledAndRetried() async throws {
            try await offline { stage in
                let id = try #require(try stage.order("/a.mp4").first?.id)
                func act(_ action: String) throws -> Download.State? {
                    try stage.change("id=\(id)", "{\"action\": \"\(action)\"}").first?.state
                }
                #expect(try act("pause") == .paused)
                #expect(try act("resume")?.hasEnded == false)
                #expect(try act("cancel") == .cancelled)
                expectRefusal(
                    try stage.control("PATCH", "/downloads?id=\(id)", body: "{\"action\": \"resume\"}"), 409,
                    naming: "download \(id) ")
                #expect(try act("retry")?.hasEnded == false)
            }
        }

        @Test func aDownloadIsMovedAndLimited() async throws {
            try await scenario {
                $0.configure { ($0.isOffline, $0.maxDownloads) = (true, 1) }
            } _: { stage in
                let ids = try stage.order("/a.mp4", "/b.mp4", "/c.mp4", "/d.mp4").map(\.id)
                _ = try stage.change("id=\(ids[0])", "{\"action\": \"cancel\"}")
                _ = try stage.change("id=\(ids[1])", "{\"action\": \"cancel\"}")
                let last = try #require(
                    try stage.change(
                        "id=\(ids[3])", "{\"priority\": \"high\", \"position\": 0, \"limit_rate\": \"2MB\"}"
                    ).first)
                #expect(last.priority == .high && last.limitRate == 2_000_000)
                #expect(try stage.change("id=\(ids[3])", "{\"limit_rate\": 0}").first?.limitRate == nil)
                #expect(try stage.change("all", "{\"priority\": \"low\"}").allSatisfy { $0.priority == .low })
            }
        }

        @Test func allAreChangedWithWhichThatIsPossible() async throws {
            try await offline { stage in
                let ids = try stage.order("/a.mp4", "/b.mp4", "/c.mp4").map(\.id)
                _ = try stage.change("id=\(ids[0])", "{\"action\": \"cancel\"}")
                #expect(try Set(stage.change("all=true", "{\"action\": \"pause\"}").map(\.id)) == Set(ids[1...]))
                #expect(try stage.change("all", "{\"action\": \"cancel\"}").count == 2)
                #expect(try stage.change("all", "{\"action\": \"cancel\"}") == [])
            }
        }

        @Test func ofThoseThatAreNamedThePossibleOnesAreChanged() async throws {
            try await offline { stage in
                let ids = try stage.order("/a.mp4", "/b.mp4", "/c.mp4").map(\.id)
                _ = try stage.change("id=\(ids[0])", "{\"action\": \"cancel\"}")
                let reports = try stage.change("id=\(ids[1]),\(ids[0]),999&all", "{\"action\": \"pause\"}")
                #expect(reports.map(\.id) == [ids[1], ids[0]] && reports.map(\.state) == [.paused, .cancelled])
                #expect(try stage.listing("?id=\(ids[2])").downloads.first?.state == .waiting)
                #expect(try stage.change("id=999&all=true", "{\"action\": \"pause\"}") == [])
                #expect(try stage.listing().summary.isOffline)
            }
        }

        @Test(arguments: [
            ("", "{\"action\": \"pause\"}", 400, "say which downloads"),
            ("?id=1,2&all", "{\"position\": 0}", 422, "only one"),
            ("?all=false", "{\"action\": \"pause\"}", 400, "say which downloads"),
            ("?id=x", "{\"action\": \"pause\"}", 400, "id is the number"),
            ("?id=1,99", "{\"action\": \"pause\"}", 404, "99"), ("?id=1", "", 400, "such as {\"action\": \"pause\"}"),
            ("?id=1", "{}", 422, "there is nothing to change"),
            ("?id=1", "{\"action\": \"explode\"}", 422, "action is one of pause, resume, cancel, retry"),
            ("?id=1", "{\"action\": null}", 422, "action"),
            ("?id=1", "{\"state\": \"paused\"}", 422, "there is no member state here; the members are action"),
            ("?id=1", "{\"limitRate\": 5}", 422, "limitRate"),
            ("?id=1", "{\"position\": -1}", 422, "position"),
            ("?id=1", "{\"position\": 1.5}", 422, "position is a whole number"),
            ("?all", "{\"position\": 0}", 422, "only one"), ("?id=1,2", "{\"position\": 0}", 422, "only one"),
            ("?id=1", "{\"limit_rate\": \"fast\"}", 422, "limit_rate is a number of bytes"),
        ])
        func aChangeThatCannotBeChangesNothing(query: String, body: String, status: Int, text: String) async throws {
            try await offline { stage in
                #expect(try stage.order("/a.mp4", "/b.mp4").map(\.id) == [1, 2])
                let before = try stage.listing()
                expectRefusal(try stage.control("PATCH", "/downloads" + query, body: body), status, naming: text)
                #expect(try stage.listing() == before)
            }
        }

        // MARK: Settings

        @Test func settingsHoldAtOnceAndUntilTheProxyEnds() async throws {
            try await scenario {
                $0.configure { ($0.isOffline, $0.maxDownloads, $0.downloadRate) = (true, 2, 3_000_000) }
            } _: { stage in
                func settings() throws -> DownloadSettings {
                    try stage.read(DownloadSettings.self, "/downloads/settings")
                }
                func set(_ body: String) throws -> DownloadSettings {
                    try stage.control("PATCH", "/downloads/settings", body: body).decoded(DownloadTotals.self).settings
                }
                #expect(try settings().maxActive == 2 && settings().limitRate == 3_000_000)
                #expect(try set("{\"max_active\": 5}").maxActive == 5 && settings().limitRate == 3_000_000)
                #expect(try set("{\"limit_rate\": \"2MB\"}").limitRate == 2_000_000 && settings().maxActive == 5)
                #expect(
                    try set("{\"limit_rate\": 0, \"max_active\": 64}").limitRate == nil && settings().maxActive == 64)
                #expect(try Set(stage.control("GET", "/downloads/settings", .nothing).members.keys) == ["max_active"])
                try stage.restart()
                #expect(try settings().maxActive == 2 && settings().limitRate == 3_000_000)
            }
        }

        @Test(arguments: [
            ("", 400), ("{}", 422), ("{\"max_active\": 0}", 422), ("{\"max_active\": 65}", 422),
            ("{\"max_active\": \"3\"}", 422), ("{\"max_active\": 2.5}", 422),
            ("{\"limit_rate\": -1}", 422), ("{\"limit_rate\": null}", 422), ("{\"limit_rate\": \"none\"}", 422),
            ("{\"max_active\": 5, \"rate\": 1}", 422), ("{\"maxActive\": 5}", 422),
        ])
        func settingsThatCannotWorkChangeNothing(body: String, status: Int) async throws {
            try await offline { stage in
                expectRefusal(try stage.control("PATCH", "/downloads/settings", body: body), status)
                #expect(try stage.read(DownloadSettings.self, "/downloads/settings") == DownloadSettings())
            }
        }

        // MARK: History

        @Test func whatHasEndedIsHistoryUntilItIsCleared() async throws {
            try await offline { stage in
                let ids =
                    try stage.order("/a.mp4", "/b.mp4", more: ", \"category\": \"series\"").map(\.id)
                    + stage.order("/c.mp4", "/d.mp4").map(\.id)
                for id in ids[..<3] { _ = try stage.change("id=\(id)", "{\"action\": \"cancel\"}") }
                func history(_ query: String = "") throws -> [Int64] {
                    try stage.read(DownloadList.self, "/downloads/history" + query).downloads.map(\.id)
                }
                #expect(try history() == [ids[2], ids[1], ids[0]])
                #expect(
                    try history("?limit=1") == [ids[2]] && history("?category=series") == [ids[1], ids[0]]
                        && history("?category=series&limit=1") == [ids[1]])
                #expect(try stage.control("DELETE", "/downloads/history").decoded(RemovedDownloads.self).removed == 3)
                #expect(try history() == [] && stage.ids("?state=all") == [ids[3]])
                #expect(try stage.control("DELETE", "/downloads/history").decoded(RemovedDownloads.self).removed == 0)
            }
        }

        // MARK: Who may

        @Test(arguments: Showing.allCases.filter { $0 != .right }) func withoutTheTokenNothingChanges(showing: Showing)
            async throws
        {
            try await offline { stage in
                let id = try #require(try stage.order("/a.mp4").first?.id)
                _ = try stage.order("/b.mp4")
                _ = try stage.change("id=\(id)", "{\"action\": \"cancel\"}")
                let before = try stage.listing("?state=all")
                for (method, path, body) in [
                    ("POST", "/downloads", "{\"downloads\": [{\"url\": \"\(stage.origin.url("/c.mp4"))\"}]}"),
                    ("PATCH", "/downloads?all", "{\"action\": \"cancel\"}"),
                    ("PATCH", "/downloads/settings", "{\"max_active\": 5}"), ("DELETE", "/downloads/history", nil),
                ] as [(String, String, String?)] {
                    let response = try stage.control(method, path, showing, body: body)
                    expectRefusal(response, 401, naming: "\(stage.cache)/control-token")
                }
                #expect(try stage.listing("?state=all") == before)
            }
        }

        @Test(arguments: [
            ("/downloads", "DELETE", "GET, HEAD, POST, PATCH, OPTIONS"),
            ("/downloads/settings", "PUT", "GET, HEAD, PATCH, OPTIONS"),
            ("/downloads/history", "POST", "GET, HEAD, DELETE, OPTIONS"),
            ("/downloads/events", "POST", "GET, HEAD, OPTIONS"),
        ])
        func otherMethodsAreNot(path: String, method: String, allowed: String) async throws {
            try await offline { stage in
                let response = try stage.control(method, path)
                expectRefusal(response, 405)
                #expect(response.headers["Allow"] == allowed)
                #expect(try stage.control("OPTIONS", path, .nothing).headers["Allow"] == allowed)
            }
        }

        // MARK: Commands

        @Test func tenThousandAreOrderedListedAndChanged() async throws {
            try await offline { stage in
                let proxy = try #require(RunningProxy(cacheDirectory: stage.cache))
                let orders = try (0..<10_000).map {
                    let url = stage.origin.url("/series/episode-\($0).mp4?token=0123456789abcdef")
                    return DownloadOrder(url: try OriginURL(ordered: url), options: .init { $0.category = "series" })
                }
                let ids = try proxy.add(orders).map(\.id)
                #expect(Set(ids).count == 10_000)
                let listing = try proxy.downloads()
                #expect(
                    listing.downloads.count == 10_000 && listing.summary.waiting + listing.summary.downloading == 10_000
                )
                #expect(try proxy.change(.ids(ids), DownloadChange(action: .pause)).map(\.id) == ids)
                let reports = try proxy.change(.possible([99_999] + ids), DownloadChange(action: .pause))
                #expect(reports.map(\.id) == ids && reports.allSatisfy { $0.state == .paused })
                _ = try proxy.change(.all, DownloadChange(action: .cancel))
                // So many are not remembered: of the others it is told at least that they are not there any more.
                var left = Set(ids)
                let end = ContinuousClock.now + .patience
                try proxy.watchDownloads(ids, isWanted: { ContinuousClock.now < end }) { news in
                    switch news {
                    case .download(let report): if report.state == .cancelled { left.remove(report.id) }
                    case .removed(let id): left.remove(id)
                    case .summary: break
                    }
                    return !left.isEmpty
                }
                #expect(left.isEmpty)
                #expect(
                    try proxy.history(limit: nil, category: "series").count == 1000
                        && proxy.history(limit: 10, category: nil).count == 10)
                #expect(try proxy.clearHistory() == 1000)
            }
        }

        /// What "Try it" offers to copy may be pasted into "Download".
        @Test func aURLAsPlayersOpenItIsThatOfItsOrigin() async throws {
            try await scenario { stage in
                try stage.proxy.cache.reconfigure { $0.mounts = ["/tv/": stage.origin.url("/vod/")] }
                let origin = stage.origin.url("/vod/a.mp4")
                for path in [ProxyProcess.target(origin), "/tv/a.mp4"] {
                    let url = "http://127.0.0.1:\(stage.proxy.port)\(path)"
                    let orders = try stage.control(
                        "POST", "/downloads", body: "{\"downloads\": [{\"url\": \"\(url)\"}]}")
                    #expect(orders.text.contains("\"url\":\"\(origin)\""), "\(orders.text)")
                    let next = try stage.control("POST", "/next", body: "{\"url\": \"\(url)\"}")
                    #expect(next.text.contains(origin), "\(next.text)")
                    let target = try stage.control("GET", "/url?url=\(url)").text
                    #expect(target.contains("\"\(ProxyProcess.target(origin))\""), "\(target)")
                    let feed = try stage.control("POST", "/feeds", body: "{\"url\": \"\(url)\"}")
                    #expect(feed.text.contains("404"), "\(feed.text)")
                }
            }
        }

        @Test func aCommandSetsWhatHoldsForAll() async throws {
            try await offline { stage in
                let proxy = try #require(RunningProxy(cacheDirectory: stage.cache))
                var settings = DownloadSettings()
                (settings.maxActive, settings.limitRate) = (7, 1_000_000)
                #expect(try proxy.set(settings).settings == settings)
                settings.limitRate = nil
                #expect(try proxy.set(settings).settings == settings)
                settings.maxActive = 99
                #expect(throws: ControlError.self) { try proxy.set(settings) }
                let error = #expect(throws: ControlError.self) {
                    try proxy.change(.ids([5]), DownloadChange(action: .pause))
                }
                #expect(error?.status == 404)
            }
        }

        /// What is ordered while nothing runs is there for whoever runs next.
        @Test func withoutAProxyOrdersAreKept() async throws {
            try await offline { stage in
                try stage.stop()
                let (url, configuration) = (stage.origin.url("/a.mp4"), stage.configuration)
                let id = try configuration.withProxy { downloads in
                    #expect(downloads.isOwn)
                    let report = try #require(
                        try downloads.add(["", "?2"].map { DownloadOrder(url: try OriginURL(ordered: url + $0)) }).first
                    )
                    #expect(report.state == .waiting)
                    #expect(throws: ControlError.self) {
                        try downloads.add([
                            DownloadOrder(url: OriginURL(ordered: url), options: .init { $0.connections = 17 })
                        ])
                    }
                    #expect(
                        try downloads.change(.ids([report.id + 1]), DownloadChange(action: .cancel)).map(\.state) == [
                            .cancelled
                        ])
                    #expect(
                        try downloads.history().map(\.id) == [report.id + 1]
                            && downloads.downloads().downloads.map(\.id) == [report.id])
                    #expect(try downloads.clearHistory() == 1)
                    return report.id
                }
                try stage.start()
                #expect(try stage.listing().downloads.map(\.urlText) == [url])
                try configuration.withProxy { downloads in
                    let listing = try downloads.downloads()
                    #expect(!downloads.isOwn && listing.downloads.map(\.id) == [id])
                }
            }
        }

        @Test func aCacheIsMadeForOrdersAlone() async throws {
            try await offline { stage in
                try stage.stop()
                var configuration = stage.configuration
                configuration.cacheDirectory += "-new"
                let error = #expect(throws: ControlError.self) {
                    try configuration.withProxy { try $0.downloads() }
                }
                #expect(error?.description.contains("there is no cache") == true)
                #expect(!FileManager.default.fileExists(atPath: configuration.cacheDirectory))
                #expect(
                    try configuration.withProxy(for: .adding) {
                        try $0.add([DownloadOrder(url: OriginURL(ordered: stage.origin.url("/a.mp4")))])
                    }.count == 1)
                #expect(try configuration.withProxy { try $0.downloads() }.downloads.count == 1)
                #expect(try configuration.withProxy { try $0.resources(ResourceQuery()).total } == 0)
            }
        }

        /// A command that fetches has a proxy of its own meanwhile, which goes on with what is there and gives
        /// everything back.
        @Test func aProxyForACommandHasTheDownloads() async throws {
            try await offline { stage in
                let ids = try stage.order("/a.mp4", "/b.mp4").map(\.id)
                try stage.stop()
                var configuration = stage.configuration
                (configuration.maxDownloads, configuration.downloadRate) = (1, 5_000_000)
                try configuration.withProxy(for: .downloading) { proxy in
                    proxy.own?.cache.downloader.start()
                    #expect(proxy.isOwn)
                    let listing = try proxy.downloads()
                    let settings = try DownloadSettings(configuration)
                    #expect(
                        listing.downloads.map(\.id) == ids
                            && listing.summary.settings == settings)
                    #expect(try proxy.change(.all, DownloadChange(action: .pause)).count == 2)
                }
                #expect(
                    try configuration.withProxy { try $0.downloads() }.downloads.map(\.state) == [.paused, .paused])
                try stage.start()
                #expect(try stage.listing("?state=paused").downloads.map(\.id) == ids)
            }
        }

        /// A command that tells what ends can look at the queue before anything of it does.
        @Test func downloadsOfACommandBeginWhenItSaysSo() async throws {
            try await offline { stage in
                stage.origin.serve("/a.mp4", Media(seed: 1, size: 100_000))
                let id = try #require(stage.order("/a.mp4").first).id
                try stage.stop()
                var configuration = stage.configuration
                configuration.isOffline = false
                let (before, after) = try configuration.withProxy(for: .downloading) { proxy in
                    let before = try proxy.downloads().downloads.map(\.state)
                    proxy.own?.cache.downloader.start()
                    return (before, try proxy.downloads().downloads.map(\.state))
                }
                #expect(before == [.waiting] && after != [.waiting], "of download \(id)")
                try stage.start()
            }
        }
    }
}
