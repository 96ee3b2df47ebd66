import ControlAPI
import DiskCache
import Downloads
import Foundation
import TestSupport
import Testing

private let film = Media(seed: 815, size: 100_000)
private let secret = "/a.mp4?id=7&token=abc"

extension Scenarios {
    /// What listings tell of URLs that open what they name.
    @Suite struct S08_SecretTests {
        @Test func listingsMaskSecretsUnlessAskedForWithTheToken() async throws {
            try await scenario { stage in
                stage.origin.serve("/a.mp4", film)
                #expect(try stage.get(secret).status == 200)
                try stage.catchUp()
                let (whole, masked) = (stage.origin.url(secret), stage.origin.url("/a.mp4?id=7&token=***"))
                let order = "{\"downloads\": [{\"url\": \"\(stage.origin.url("/b.mp4?sig=def"))\"}]}"
                let ordered = try stage.control("POST", "/downloads", body: order)
                #expect(
                    ordered.status == 201 && ordered.text.contains("/b.mp4?sig=***") && !ordered.text.contains("def"),
                    "\(ordered.text)")
                let one = "/resources?\(stage.parameter(secret))"
                for path in ["/resources", one, "/downloads?state=all", "/downloads/history"] {
                    for showing in [Showing.right, .nothing] {
                        let text = try stage.control("GET", path, showing).text
                        #expect(!text.contains("abc") && !text.contains("def"), "\(path): \(text)")
                    }
                    let open = path + (path.contains("?") ? "&" : "?") + "secrets=true"
                    for showing in Showing.allCases.filter({ $0 != .right }) {
                        expectRefusal(try stage.control("GET", open, showing), 401)
                    }
                }
                #expect(try stage.read(ResourceListing.self, "/resources").resources.map(\.urlText) == [masked])
                #expect(try stage.read(ResourceDetail.self, one).finalURL == masked)
                #expect(try stage.control("GET", one + "&secrets=true").decoded(ResourceDetail.self).finalURL == whole)
                #expect(
                    try stage.control("GET", "/resources?secrets").decoded(ResourceListing.self).resources.map(
                        \.urlText)
                        == [whole])
                #expect(
                    try stage.control("GET", "/resources?secrets=false").decoded(ResourceListing.self).resources.map(
                        \.urlText) == [masked])
                #expect(try stage.control("GET", "/downloads?state=all&secrets=true").text.contains("sig=def"))
                expectRefusal(
                    try stage.control("GET", "/resources?\(stage.parameter("/a.mp4?id=7&token=***"))", .nothing), 404,
                    naming: "secrets=true")
            }
        }

        /// It would tell a secret letter by letter.
        @Test func aFilterDoesNotSeeWhatIsMasked() async throws {
            try await scenario { stage in
                stage.origin.serve("/a.mp4", film)
                #expect(try stage.get(secret).status == 200)
                try stage.catchUp()
                for (filter, count) in [("token%3Da", 0), ("abc", 0), ("id%3D7", 1), ("A.MP4", 1), ("***", 1)] {
                    let listing = try stage.read(ResourceListing.self, "/resources?filter=\(filter)")
                    #expect(listing.total == count && listing.resources.count == count, "\(filter)")
                }
                #expect(
                    try stage.control("GET", "/resources?filter=token%3Da&secrets=true").decoded(ResourceListing.self)
                        .total == 1)
            }
        }

        @Test func eventsMaskSecrets() async throws {
            try await scenario { setting in
                setting.tuning.downloads = false
            } _: { stage in
                var report = Download.sample(1)
                report.urlText = "https://example.org/a?token=abc"
                stage.snapshots.post(report)
                #expect(
                    try stage.listener().event().decoded(Download.self).urlText == "https://example.org/a?token=***")
                let open = try stage.listener("?secrets=true", headers: stage.authorization())
                #expect(try open.event().decoded(Download.self).urlText == report.urlText)
            }
        }

        @Test func furtherParametersAreMaskedWhereTheyAreSet() async throws {
            try await scenario { setting in
                setting.configure { $0.secretParameters = ["id"] }
            } _: { stage in
                stage.origin.serve("/a.mp4", film)
                #expect(try stage.get(secret).status == 200)
                try stage.catchUp()
                #expect(
                    try stage.read(ResourceListing.self, "/resources").resources.map(\.urlText) == [
                        stage.origin.url("/a.mp4?id=***&token=***")
                    ])
            }
        }
    }
}
