import Foundation
import TestSupport
import Testing

/// `reelcache verify`.
@Suite struct VerifyTests {
    @Test(arguments: Ownership.allCases) func aSoundCacheIsToldSound(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4"], parts: ["/b.mp4"])
        #expect(try shelf.say("verify") == "read 2 resources, 17 chunks, 1.07 MB\neverything is sound\n")
        let report = try shelf.json("verify", "--repair")
        #expect(
            report["resources"] as? Int == 2 && report["chunks"] as? Int == 17 && report["bytes"] as? Int == 1_065_536)
        #expect((report["damaged"] as? [Any])?.isEmpty == true && report["orphaned_files"] as? Int == 0)
    }

    @Test(arguments: Ownership.allCases) func damageIsToldLeftAndRepaired(ownership: Ownership) throws {
        let shelf = try Shelf(.alone, whole: ["/a.mp4"])
        try shelf.damage()
        let proxy = ownership == .running ? try ProxyProcess(cacheDirectory: shelf.cache.path) : nil
        for _ in 1...2 {
            let found = try shelf.run("verify")
            #expect(found.exit == .exited(1) && found.stderr == "", "\(found)")
            #expect(
                found.lines.contains("damaged   \(shelf.origin.url("/a.mp4")): 1 chunk, bytes 65536-131071")
                    && found.stdout.contains("--repair"), "\(found)")
        }
        let json = try shelf.run("verify", "--json")
        #expect(json.exit == .exited(1))
        #expect((try json.members["damaged"] as? [[String: Any]])?.first?["chunks"] as? Int == 1)
        #expect(try shelf.say("verify", "--repair").lines.last?.hasPrefix("repaired") == true)
        #expect(try shelf.say("verify").lines.last == "everything is sound")
        #expect(try shelf.say("show", shelf.origin.url("/a.mp4")).contains(": 65536-131071\n"))
        if let proxy { #expect(try proxy.process.terminate() == .exited(0)) }
    }

    /// A proxy that ends meanwhile tells what it has found until then.
    @Test func whatWasEndedEarlyIsNotSound() throws {
        let shelf = try Shelf(.alone)
        let report =
            "{\"resources\":1,\"chunks\":2,\"bytes\":131072,\"damaged\":[],\"missing_files\":[],\"damaged_rows\":[],"
            + "\"orphaned_files\":0,\"orphaned_bytes\":0,\"is_repaired\":false,\"is_complete\":false}\n"
        for path in ["/healthz", "/api/v1/verify?repair=false&secrets=true"] {
            shelf.origin.script(path) { ($0.status, $0.body) = (200, Array(report.utf8)) }
        }
        let owner = try shelf.pretendOwner(url: shelf.origin.url(""))
        defer { try? owner.close() }
        let outcome = try shelf.run("verify")
        #expect(outcome.exit == .exited(1) && outcome.stderr == "", "\(outcome)")
        #expect(outcome.lines == ["read 1 resource, 2 chunks, 131 kB", "interrupted before everything was read"])
    }
}
