import CachePolicy
import ControlAPI
import Downloads
import Playlists
import Reelcache
import TestSupport
import Testing

/// Subscriptions over the control interface, by programs that read feeds through the proxy.
extension Scenarios {
    @Suite struct S42Subscriptions {
        private static func serve(_ stage: Stage) -> (url: String, proxied: String) {
            let text = "<rss version=\"2.0\"><channel><title>Talk</title></channel></rss>"
            stage.origin.serve("/feed.xml", bytes: Array(text.utf8), contentType: "application/rss+xml")
            let base = "http://127.0.0.1:\(stage.proxy.port)"
            return (stage.origin.url("/feed.xml"), base + stage.target("/feed.xml"))
        }

        private static func subscribed(_ stage: Stage) throws -> [String] {
            try stage.read(FeedList.self, "/feeds").feeds.map(\.urlText)
        }

        /// They export the proxy's URLs.
        @Test func importedListWithTheProxysURLsSubscribesToTheOriginsFeeds() async throws {
            try await scenario { stage in
                let (url, proxied) = Self.serve(stage)
                let list = """
                    <opml version="2.0"><body><outline text="One" xmlUrl="\(proxied)"/>\
                    <outline text="Two" xmlUrl="\(url)"/></body></opml>
                    """
                let result = try stage.control("POST", "/feeds/import", body: list).decoded(FeedImport.self)
                #expect(result.added == [url] && result.skipped == ["Two: an earlier item is the same"])
                #expect(try Self.subscribed(stage) == [url])
            }
        }

        /// Earlier versions kept such a URL, beside that of the origin.
        @Test func subscriptionWithTheProxysURLIsRemovedByIt() async throws {
            try await scenario { stage in
                let (url, proxied) = Self.serve(stage)
                let list = OPML(feeds: [
                    OPMLFeed(title: "One", url: try OriginURL(url: proxied)),
                    OPMLFeed(title: "Two", url: try OriginURL(url: url)),
                ])
                _ = try stage.proxy.cache.downloader.subscriptions.perform {
                    try $0.importList(list, SubscriptionChange())
                }
                let removed = try stage.control("DELETE", "/feeds?url=" + stage.percentEncoded(proxied))
                #expect(try removed.decoded(FeedSubscription.self).urlText == proxied)
                #expect(try Self.subscribed(stage) == [url])
            }
        }
    }
}
