import Activity
import CachePolicy
import DiskCache
import Dispatch
import HTTPModel
import Logging
import Playlists
import Synchronization
import TestSupport
import Testing

@testable import Presentations

/// What of a presentation is cached.
@Suite struct PresentationContentsTests {
    private let directory: TemporaryDirectory
    private let store: CacheStore
    private let whole = CacheKey(text: "https://a.example/v/film.m3u8")

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = StoreConfiguration(directory: directory.path)
        (configuration.maxSize, configuration.minFree) = (1 << 30, 0)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        store = try CacheStore(configuration, metrics: ProxyMetrics(), logger: logger)
    }

    /// Stores some bytes below `https://a.example/v/`.
    /// - Parameter length: of the resource, where these are not all.
    private func put(
        _ name: String, _ bytes: [UInt8], length: Int? = nil, isPart: Bool = true, type: String = "video/mp2t"
    )
        throws
    {
        let url = "https://a.example/v/\(name)"
        let head = GenerationHead(
            status: 200, fields: HeaderFields([.init(name: "Content-Type", value: type)]), finalURL: url,
            storedAt: 1_700_000_000)
        let generation = try store.makeGeneration(
            CacheKey(text: url), head: head, length: Int64(length ?? bytes.count), partOf: isPart ? whole : nil)
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: store)
        guard case .taken = bytes.withUnsafeBytes({ writer.append($0) }) else {
            Issue.record("there is no room")
            return
        }
    }

    private func put(_ name: String, _ lines: String..., isPart: Bool = true) throws {
        try put(
            name, Array((["#EXTM3U"] + lines).joined(separator: "\n").utf8), isPart: isPart,
            type: "application/vnd.apple.mpegurl")
    }

    /// A long playlist is in memory once, for players and all who list its segments; not where others may replace its
    /// variables.
    @Test func readPlaylistsAreShared() throws {
        try put("a.m3u8", "#EXT-X-TARGETDURATION:2", "#EXTINF:2,", "a.ts", "#EXT-X-ENDLIST", isPart: false)
        let key = CacheKey(text: "https://a.example/v/a.m3u8")
        let first = try #require(try PlaylistDocument.stored(key, in: store))
        #expect(try PlaylistDocument.stored(key, in: store) === first)
        #expect(try PlaylistDocument.stored(key, in: store, importing: ["a": "b"]) === first)
        try put("a.m3u8", "#EXT-X-DEFINE:IMPORT=\"a\"", "#EXTINF:2,", "{$a}.ts", "#EXT-X-ENDLIST", isPart: false)
        let second = try #require(try PlaylistDocument.stored(key, in: store, importing: ["a": "b"]))
        #expect(second.generation != first.generation)
        #expect(try PlaylistDocument.stored(key, in: store, importing: ["a": "b", "c": "d"]) === second)
        #expect(try PlaylistDocument.stored(key, in: store, importing: ["a": "c"]) !== second)
    }

    /// Whether it is a presentation does not depend on what is in memory.
    @Test func feedThatWasReadIsNoPlaylist() throws {
        let text = Array("<rss><channel><item><enclosure url='a.mp3'/></item></channel></rss>".utf8)
        try put("feed.xml", text, isPart: false, type: "application/rss+xml")
        let key = CacheKey(text: "https://a.example/v/feed.xml"), url = try OriginURL(url: key.text)
        let id = try #require(try store.completeGeneration(of: key))
        let feed = try PlaylistDocument(
            feed: text, type: "application/rss+xml", key: key, url: url, base: url, generation: id,
            within: WorkBudget(bytes: text.count))
        store.readings[id] = feed
        #expect(try PlaylistDocument.stored(key, in: store) == nil)
        withExtendedLifetime(feed) {}
    }

    /// What a text makes it do may never end: the one that is being read finds the store closed, those behind it are
    /// not begun.
    @Test func closingWaitsForNoText() throws {
        try putMultivariant()
        let begun = DispatchSemaphore(value: 0), gate = DispatchSemaphore(value: 0), others = Atomic(0)
        for host in ["a.example", "b.example"] {
            _ = store.performOnText(of: host) { [store, whole] in
                begun.signal()
                gate.wait()
                _ = try? PresentationContents(of: whole, in: store, ProxyPolicy())
                begun.signal()
            }
        }
        for _ in 1...2 { begun.wait() }
        for host in ["a.example", "c.example"] {
            _ = store.performOnText(of: host) { others.add(1, ordering: .relaxed) }
        }
        try store.close()
        for _ in 1...2 { gate.signal() }
        for _ in 1...2 { begun.wait() }
        #expect(!store.performOnText(of: "c.example") {} && others.load(ordering: .relaxed) == 0)
    }

    /// However many documents of one host are costly, those of others are read.
    @Test func aHostHasOneThreadAtMost() {
        let begun = DispatchSemaphore(value: 0), gate = DispatchSemaphore(value: 0), running = Atomic(0)
        for _ in 1...3 {
            _ = store.performOnText(of: "a.example") {
                #expect(running.add(1, ordering: .relaxed).newValue == 1)
                begun.signal()
                gate.wait()
                running.subtract(1, ordering: .relaxed)
            }
        }
        begun.wait()
        for _ in 1...2 {
            _ = store.performOnText(of: "b.example") { begun.signal() }
            begun.wait()
        }
        for place in 1...3 {
            gate.signal()
            if place < 3 { begun.wait() }
        }
    }

    /// What long commands find out only to tell it ends, so that closing does not wait for it.
    @Test func surveyEndsWithTheStore() throws {
        try putMultivariant()
        try putMedia("hi.m3u8", "h1.ts", "h2.ts")
        #expect(try PresentationContents(of: whole, in: store, ProxyPolicy())?.renditions.isEmpty == false)
        store.endThreads()
        let error = #expect(throws: StoreError.self) {
            try PresentationContents(of: whole, in: store, ProxyPolicy())
        }
        #expect(error?.reason == StoreError.closing.reason)
    }

    @Test func whoWaitsTogetherGetsOneReading() {
        let begun = DispatchSemaphore(value: 0), gate = DispatchSemaphore(value: 0), ended = DispatchSemaphore(value: 0)
        let readings = Atomic(0)
        let kept = PresentationContents.SharedReading { _, _, _ in
            readings.add(1, ordering: .relaxed)
            begun.signal()
            gate.wait()
            return .playlists([])
        }
        for round in 1...2 {
            for waiter in 1...5 {
                kept.find(of: whole, in: store, ProxyPolicy(), Logger(label: "test")) {
                    if $0 == .playlists([]) { ended.signal() }
                }
                if waiter == 1 { begun.wait() }
            }
            gate.signal()
            for _ in 1...5 { ended.wait() }
            #expect(readings.load(ordering: .relaxed) == round)
        }
    }

    private func putMultivariant() throws {
        try put(
            "film.m3u8", "#EXT-X-SESSION-DATA:DATA-ID=\"com.apple.hls.title\",VALUE=\"Film\"",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"English\",LANGUAGE=\"en\",URI=\"en.m3u8\"",
            "#EXT-X-STREAM-INF:BANDWIDTH=4500000,RESOLUTION=1920x1080,AUDIO=\"a\"", "hi.m3u8",
            "#EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360,AUDIO=\"a\"", "lo.m3u8", isPart: false)
    }

    private func contents(listsSegments: Bool = false) throws -> PresentationContents? {
        try PresentationContents(of: whole, in: store, ProxyPolicy(), listsSegments: listsSegments)
    }

    private func putMedia(_ name: String, _ segments: String..., key: String? = nil) throws {
        let lines = segments.flatMap { ["#EXTINF:2,", $0] }
        let keys = key.map { ["#EXT-X-KEY:METHOD=AES-128,URI=\"\($0)\""] } ?? []
        try put(
            name,
            (["#EXT-X-TARGETDURATION:2", "#EXT-X-PLAYLIST-TYPE:VOD"] + keys + lines + ["#EXT-X-ENDLIST"]).joined(
                separator: "\n"))
    }

    @Test func renditionsThatAreThereAsAWholeAreKept() throws {
        try putMultivariant()
        #expect(try contents()?.isPlayable == false)
        try putMedia("hi.m3u8", "h1.ts", "h2.ts", "h3.ts", key: "key")
        try putMedia("en.m3u8", "e1.ts")
        for name in ["h1.ts", "h3.ts", "e1.ts"] { try put(name, [UInt8](repeating: 1, count: 1000)) }
        try put("h2.ts", [UInt8](repeating: 1, count: 65536), length: 100_000)
        let found = try #require(try contents(listsSegments: true))
        let report = found.report
        #expect(report.title == "Film" && report.kind == "hls" && !report.isLive && !report.isComplete)
        #expect(report.renditions.map(\.name) == ["1080p 4.5 Mbit/s", "360p 800 kbit/s", "audio en"])
        #expect(report.renditions.map(\.segments) == [3, 0, 1])
        #expect(report.renditions.map(\.cachedSegments) == [2, 0, 1])
        #expect(report.renditions.map(\.cachedBytes) == [67_536, 0, 1000])
        #expect(report.renditions.map(\.isComplete) == [false, false, true])
        #expect(report.renditions[0].isEncrypted)
        #expect(report.renditions[0].segmentList?.map(\.isCached) == [true, false, true])
        #expect(report.renditions[0].segmentList?[1].cached == 65_536)
        #expect(!found.isPlayable)

        // The last segment, and still not the key.
        try put("h2.ts", [UInt8](repeating: 1, count: 1000))
        #expect(try contents()?.isPlayable == false)
        try put("key", [UInt8](repeating: 7, count: 16))
        let whole = try #require(try contents())
        #expect(whole.isPlayable && !whole.report.isComplete)
        let kept = try ["hi.m3u8", "en.m3u8"].map { try OriginURL(url: "https://a.example/v/" + $0) }
        #expect(whole.kept == .playlists(Set(kept)))
    }

    /// The last range may extend beyond the file.
    @Test(arguments: [54_536, 54_546], [true, false])
    func rangesOfOneFileCountByWhatIsThere(last: Int, isPart: Bool) throws {
        try put(
            "film.m3u8", "#EXT-X-TARGETDURATION:2", "#EXT-X-MAP:URI=\"all.mp4\",BYTERANGE=\"1000@0\"", "#EXTINF:2,",
            "#EXT-X-BYTERANGE:60000@1000", "all.mp4", "#EXTINF:2,", "#EXT-X-BYTERANGE:\(last)", "all.mp4",
            "#EXT-X-ENDLIST", isPart: false)
        try put("all.mp4", [UInt8](repeating: 1, count: 65536), length: 115_536, isPart: isPart)
        let report = try #require(try contents()?.report)
        #expect(report.segments == 2 && report.cachedSegments == 1 && !report.isPlayable)
        #expect(report.renditions.first?.cachedBytes == 65_536)
        try put("all.mp4", [UInt8](repeating: 1, count: 115_536), isPart: isPart)
        #expect(try contents()?.report.isComplete == true)
        #expect(try contents()?.report.renditions.first?.cachedBytes == 115_536)
    }

    @Test func representationsOfAnMPDAreKept() throws {
        let mpd = """
            <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S">
            <ProgramInformation><Title>Clip</Title></ProgramInformation>
            <Period><AdaptationSet contentType="video"><SegmentTemplate media="$RepresentationID$-$Number$.m4s"
            initialization="$RepresentationID$.mp4" duration="2"/>
            <Representation id="v1" bandwidth="2000000" width="1280" height="720"/>
            <Representation id="v2" bandwidth="1000000" width="640" height="360"/></AdaptationSet></Period></MPD>
            """
        try put("film.m3u8", Array(mpd.utf8), isPart: false, type: "application/dash+xml")
        for name in ["v2.mp4", "v2-1.m4s", "v2-2.m4s", "v1-1.m4s", "v1-2.m4s"] { try put(name, [1, 2, 3]) }
        let found = try #require(try contents())
        #expect(found.report.title == "Clip" && found.isPlayable)
        #expect(found.report.renditions.map(\.name) == ["720p 2.0 Mbit/s", "360p 1.0 Mbit/s"])
        // The first lacks its initialization section.
        #expect(found.report.renditions.map(\.cachedSegments) == [2, 2])
        #expect(found.kept == .representations([.init(period: 0, adaptationSet: 0, representation: 1)]))
    }

    /// A download fetches such a file as a whole: what it completes is complete.
    @Test(arguments: ["indexRange=\"4-7\"", ""])
    func fileWhoseIndexIsOfAnotherKindIsOneSegment(index: String) throws {
        let mpd = """
            <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S"><Period>
            <AdaptationSet mimeType="video/webm"><Representation id="v"><BaseURL>f.webm</BaseURL>
            <SegmentBase \(index)><Initialization range="0-3"/><RepresentationIndex/></SegmentBase>
            </Representation></AdaptationSet></Period></MPD>
            """
        try put("film.m3u8", Array(mpd.utf8), isPart: false, type: "application/dash+xml")
        try put("f.webm", [0x1A, 0x45, 0xDF, 0xA3, 0x1C, 0x53, 0xBB, 0x6B, 1, 2])
        let report = try #require(try contents(listsSegments: true)?.report)
        #expect(report.isComplete && report.renditions.map(\.cachedBytes) == [10])
        #expect(report.renditions.first?.initializations?.isEmpty == true, "joined, the file begins with it once")
    }

    @Test func keysOfLicenceServersAreNotNeeded() throws {
        try put(
            "film.m3u8", "#EXT-X-TARGETDURATION:2",
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"https://licence.example/1\",KEYFORMAT=\"com.widevine\"", "#EXTINF:2,",
            "s.ts", "#EXT-X-ENDLIST", isPart: false)
        try put("s.ts", [1, 2, 3])
        let rendition = try #require(try contents()?.report.renditions.first)
        #expect(rendition.isComplete && rendition.isEncrypted)
    }

    /// A rule of some bytes names a million segments.
    @Test func moreSegmentsThanAreLookedAtAreNotComplete() throws {
        let mpd = """
            <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2000S">
            <Period><AdaptationSet contentType="video"><SegmentTemplate media="$Number$.m4s" duration="2"/>
            <Representation id="v1" bandwidth="1"/><Representation id="v2" bandwidth="2"/>
            </AdaptationSet></Period></MPD>
            """
        try put("film.m3u8", Array(mpd.utf8), isPart: false, type: "application/dash+xml")
        for number in 1...3 { try put("\(number).m4s", [1, 2, 3]) }
        let found = try PresentationContents(of: whole, in: store, ProxyPolicy(), mostSegments: 3)
        let report = try #require(found?.report)
        #expect(report.renditions.map(\.segments) == [3, 0] && report.renditions.map(\.cachedSegments) == [3, 0])
        #expect(!report.isComplete && !report.isPlayable)
        let shared = try PresentationContents(
            of: whole, in: store, ProxyPolicy(), listsSegments: true, mostSegments: 5, isShared: true)
        #expect(try #require(shared).renditions.map(\.examined) == [2, 3])
        #expect(try #require(shared).report.renditions.map(\.cachedSegments) == [2, 3])
        let all = try #require(try contents(listsSegments: true)).renditions
        #expect(all.map(\.states.runCount) == [2, 2], "memory follows what is cached")
        #expect(all[0].segmentReports(1..<5).map(\.isCached) == [true, true, false, false])
    }

    /// The index is not asked about each segment that is listed.
    @Test func segmentsThatAreNoPartsDoNotCount() throws {
        try put(
            "film.m3u8", "#EXT-X-TARGETDURATION:2", "#EXTINF:2,", "s1.ts", "#EXTINF:2,", "s2.ts", "#EXT-X-ENDLIST",
            isPart: false)
        try put("s1.ts", [1, 2, 3])
        try put("s2.ts", [1, 2, 3], isPart: false)
        #expect(try contents()?.report.cachedSegments == 1)
    }

    @Test func whatIsNoPlaylistHasNoContents() throws {
        try put("film.m3u8", Array("<html>".utf8), isPart: false)
        #expect(try contents() == nil)
        #expect(try PresentationContents(of: CacheKey(text: "https://a.example/none"), in: store, ProxyPolicy()) == nil)
    }
}
