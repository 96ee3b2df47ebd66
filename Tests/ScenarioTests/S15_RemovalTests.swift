import ControlAPI
import DiskCache
import Downloads
import Foundation
import Testing
import TestSupport

@testable import Reelcache

private let film = Media(seed: 151, size: 1_000_000)

private extension Stage {
    /// Begins to download a film, which stops in its middle.
    func begin(_ path: String, more: String = "") throws -> Download {
        let file = String(path.prefix { $0 != "?" })
        origin.serve(file, film)
        origin.script(file) { $0.stallAfter = 524_288 }
        let order = "{\"downloads\": [{\"url\": \"\(origin.url(path))\"\(more)}]}"
        let report = try #require(
            try control("POST", "/downloads", body: order).decoded(DownloadList.self, status: 201).downloads.first)
        try origin.waitForRequests(path, count: 1)
        try wait { try self.read(DownloadListing.self, "/downloads?id=\(report.id)").downloads.first?.bytes == 524_288 }
        return report
    }

    func wait(until isSo: () throws -> Bool) throws {
        try eventually("what was waited for", isSo: isSo)
    }

    func state(_ id: Int64) throws -> Download.State? {
        try read(DownloadListing.self, "/downloads?id=\(id)").downloads.first?.state
    }
}

extension Scenarios {
    /// What becomes of a download whose resource somebody removes.
    @Suite struct S15Removal {
        @Test func whatIsBeingDownloadedIsNotRemovedByName() async throws {
            try await scenario { stage in
                let download = try stage.begin("/a.mp4")
                let refused = try stage.control("DELETE", "/resources?" + stage.parameter("/a.mp4"))
                expectRefusal(refused, 409, naming: "is being downloaded (download \(download.id)); cancel it first")
                #expect(try refused.members["download"] as? Int == Int(download.id))
                #expect(throws: CacheError.self) {
                    try stage.proxy.cache.remove(#require(URL(string: stage.origin.url("/a.mp4"))))
                }
                stage.origin.releaseAll()
                try stage.wait { try stage.state(download.id) == .completed }
                #expect(stage.origin.bytesSent("/a.mp4") == film.size)
                let removed = try stage.control("DELETE", "/resources?" + stage.parameter("/a.mp4")).decoded(
                    RemovalReport.self)
                #expect(removed.resources == 1)
            }
        }

        /// Under another URL of the same resource, too.
        @Test func rulesSayWhatIsOneResource() async throws {
            try await scenario {
                $0.configure { $0.rules = [.init { $0.ignoredQuery = .all }] }
            } _: { stage in
                let download = try stage.begin("/a.mp4?session=1")
                expectRefusal(
                    try stage.control("DELETE", "/resources?" + stage.parameter("/a.mp4?session=2")), 409,
                    naming: "download \(download.id)")
                stage.origin.releaseAll()
            }
        }

        /// Which is not pinned: it begins again, and ends with all of it.
        @Test func removingAllLetsADownloadBeginAgain() async throws {
            try await scenario { stage in
                let download = try stage.begin("/a.mp4", more: ", \"pinned\": false")
                _ = try stage.control("DELETE", "/resources?all=true").decoded(RemovalReport.self)
                stage.origin.releaseAll()
                try stage.wait { try stage.state(download.id) == .completed }
                expectWhole(try stage.get("/a.mp4"), film)
                #expect(try stage.get("/a.mp4").isHit)
            }
        }
    }
}
