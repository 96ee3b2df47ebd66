import ControlAPI
import Downloads
import Testing

/// The JSON of downloads and subscriptions, byte for byte: programs read it, and so do proxies of other versions.
@Suite struct ControlShapeTests {
    private static let full =
        #"{"added":1700000000,"all":true,"audio":"en,de","bytes":10,"category":"series","connections":4,"eta":9,"#
        + #""failures":2,"feed":"https://example.org/feed","file_name":"a.mp4","finished":1700000009,"first":100,"#
        + #""held_until":1700000050,"id":7,"is_at_once":true,"is_held":true,"is_pinned":false,"last":50,"#
        + #""limit_rate":1000,"message":"m","priority":"high","quality":"1080p","rate":3,"record_for":60,"#
        + #""retry_at":1700000060,"segments":1,"started":1700000001,"state":"downloading","subtitles":"all","total":90,"#
        + #""total_segments":2,"url":"https://example.org/a.mp4"}"#
    private static let short =
        #"{"added":1700000000,"bytes":0,"connections":1,"failures":0,"id":8,"is_pinned":true,"priority":"normal","#
        + #""state":"waiting","url":"https://example.org/b.mp4"}"#
    private static let summary =
        #"{"bytes":10,"downloading":1,"eta":4,"held_until":1700000070,"hold":"h","is_offline":false,"paused":3,"rate":5,"#
        + #""scheduled_rate":6,"settings":{"caps":["2GB/day"],"limit_rate":2000,"max_active":3,"schedule":["else=off"]},"#
        + #""total":20,"usage":{"this_month":9,"today":8},"waiting":2}"#
    private static let emptySummary =
        #"{"bytes":0,"downloading":0,"is_offline":true,"paused":0,"rate":0,"settings":{"max_active":3},"waiting":0}"#
    private static let feed =
        #"{"episodes":[{"bytes":1,"download":7,"message":"e","published":1600000000,"state":"passed_over","title":"e","#
        + #""url":"https://example.org/1.mp3"}],"feed":{"added":1700000000,"address":"https://example.org/new","#
        + #""broken_since":1700000002,"cap":"2GB/day","category":"c","checked":1700000001,"episodes":4,"every":3600,"#
        + #""failed":1,"failures":5,"keep":"2GB","latest":3,"message":"m","next_check":1700003600,"ordered":2,"title":"t","#
        + #""title_pattern":"*a*","unfinished":6,"url":"https://example.org/feed"},"skipped_items":["s: no media"]}"#
    private static let shortFeed =
        #"{"episodes":[{"bytes":0,"state":"removed","url":"https://example.org/2.mp3"}],"feed":{"added":1,"episodes":0,"#
        + #""every":300,"failed":0,"failures":0,"latest":0,"next_check":2,"ordered":0,"unfinished":0,"#
        + #""url":"https://example.org/feed"}}"#

    private func isKept<Value: Codable>(_ text: String, as type: Value.Type) throws {
        let value = try ControlJSON.decode(type, from: text.utf8)
        #expect(String(decoding: try ControlJSON.line(value), as: UTF8.self) == text + "\n")
    }

    @Test func downloadsKeepTheirShape() throws {
        try isKept(
            #"{"downloads":["# + Self.full + "," + Self.short + #"],"summary":"# + Self.summary + "}",
            as: DownloadListing.self)
        try isKept(#"{"downloads":[],"summary":"# + Self.emptySummary + "}", as: DownloadListing.self)
    }

    @Test func subscriptionsKeepTheirShape() throws {
        try isKept(Self.feed, as: SubscriptionDetail.self)
        try isKept(Self.shortFeed, as: SubscriptionDetail.self)
    }
}
