import CachePolicy
import Playlists

extension FuzzTarget {
    static let playlists = [
        FuzzTarget(name: "hls", seeds: hlsSeeds, run: hls), FuzzTarget(name: "mpd", seeds: mpdSeeds, run: mpd),
        FuzzTarget(name: "sidx", seeds: [sidxSeed], run: sidx),
    ]

    private static let hlsSeeds = [
        """
        #EXTM3U
        #EXT-X-TARGETDURATION:4
        #EXT-X-MAP:URI="/i.mp4",BYTERANGE="7@0"
        #EXTINF:4.0,
        #EXT-X-BYTERANGE:5@7
        ../f.mp4
        #EXTINF:4.0,
        #EXT-X-BYTERANGE:9
        ../f.mp4
        #EXT-X-ENDLIST

        """,
        """
        #EXTM3U
        #EXT-X-DEFINE:NAME="a",VALUE="//b/"
        #EXT-X-DEFINE:QUERYPARAM="q"
        #EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=2x3,AUDIO="g",SUBTITLES="s"
        {$a}{$q}.m3u8
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",URI="a.m3u8"

        """,
        """
        #EXTM3U
        #EXT-X-TARGETDURATION:4
        #EXT-X-PART-INF:PART-TARGET=0.5
        #EXT-X-MEDIA-SEQUENCE:9
        #EXT-X-SKIP:SKIPPED-SEGMENTS=3
        #EXT-X-KEY:METHOD=AES-128,URI="skd://x"
        a?b#c
        #EXT-X-PART:DURATION=0.5,URI="b",BYTERANGE="5@6"
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI="c",BYTERANGE-START=9
        #EXT-X-DATERANGE:ID="d",X-ASSET-URI="//e"

        """,
    ]

    private static let mpdSeeds = [
        """
        <MPD mediaPresentationDuration="PT9S"><BaseURL>/a/</BaseURL><BaseURL>//b/</BaseURL><Period><AdaptationSet>
        <SegmentTemplate timescale="10" startNumber="5" media='$RepresentationID$/$Number%03d$-$Time$?x&amp;' \
        initialization="i$$"><SegmentTimeline><S t="3" d="5" r="2"/><S n="99" d="7" r="-1"/></SegmentTimeline>
        </SegmentTemplate><Representation id="v" bandwidth="9"/></AdaptationSet></Period></MPD>
        """,
        """
        <MPD type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z" timeShiftBufferDepth="PT1M" \
        minimumUpdatePeriod="PT2S"><Location>../x</Location>
        <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value="/t u"/><Period xlink:href="p"><AdaptationSet>
        <Representation id="v"><SegmentTemplate duration="2" media="$Number$"/></Representation></AdaptationSet>
        </Period></MPD>
        """,
        """
        <MPD><Period duration="PT6S"><AdaptationSet lang="en"><Representation id="v"><BaseURL>f.mp4</BaseURL>
        <SegmentList duration="2"><Initialization range="0-9"/><SegmentURL mediaRange="10-19"/><SegmentURL media="g"/>
        </SegmentList></Representation></AdaptationSet></Period></MPD>
        """,
    ]

    private static let sidxSeed =
        "\0\0\0\u{2C}sidx\0\0\0\0\0\0\0\u{1}\0\0\u{3}\u{50}\0\0\0\0\0\0\0\0\0\0\0\u{1}"
        + "\0\0\u{32}\u{50}\0\0\u{50}\0\u{10}\0\0\0"

    private static func url(_ text: String) throws -> OriginURL { try OriginURL(url: text) }

    private static func edited(_ input: [UInt8], _ edits: [AddressEdit]) throws -> [UInt8] {
        var place = 0
        for edit in edits {
            try hold(
                edit.range.lowerBound >= place && edit.range.upperBound <= input.count,
                "an edit outside of the text, or within another")
            place = edit.range.upperBound
        }
        return edits.applied(to: input)
    }

    private static func hls(_ input: [UInt8]) throws {
        let base = try url("https://origin.example/a/b/c.m3u8?q=1"),
            form = ProxyForm.path(at: try url("http://proxy.example:7335")), budget = WorkBudget(bytes: 1 << 20)
        guard let playlist = try? HLSPlaylist(input, at: base, within: budget) else { return }
        // The client's URL is that of another place, as behind a redirect.
        for client in [form(base), try url("http://proxy.example:7335/http/other.example/x?q=1")] {
            guard let edits = try? playlist.edits(for: form, at: client, within: budget) else { continue }
            let seen = try HLSPlaylist(edited(input, edits), at: client, within: budget)
            let meant = playlist.addresses.map { playlist.url(of: $0).map { form($0) } }
            for (meant, found) in zip(meant, seen.addresses) where meant != nil {
                try hold(
                    spelled(seen.url(of: found)) == spelled(meant),
                    "\(found.reference) leads elsewhere than to \(meant?.absolute ?? "")")
            }
            try hold(meant.count == seen.addresses.count, "\(meant.count) addresses became \(seen.addresses.count)")
        }
        if let segments = try playlist.segments(within: budget) { try check(segments) }
        guard let multivariant = playlist.multivariant else { return }
        let chosen = multivariant.choose(RenditionChoice(audio: .all, subtitles: .all))
        guard let edits = try? multivariant.edits(keeping: Set(chosen.playlists), within: budget) else { return }
        _ = try? HLSPlaylist(edited(input, edits), at: base, within: budget)
    }

    /// As it is written where it has to stand in quotes, and beside variables.
    private static func spelled(_ url: OriginURL?) -> String? { url?.absolute.replacing("{$", with: "%7B$") }

    private static func mpd(_ input: [UInt8]) throws {
        let base = try url("https://origin.example/a/b/c.mpd"),
            form = ProxyForm.path(at: try url("http://proxy.example:7335")), budget = WorkBudget(bytes: 1 << 20)
        guard let mpd = try? MPD(input, at: base, within: budget) else { return }
        for client in [form(base), try url("http://proxy.example:7335/http/other.example/x")] {
            guard let edits = try? mpd.edits(for: form, at: client, within: budget) else { continue }
            let seen = try MPD(edited(input, edits), at: client, within: budget)
            try hold(seen.representations == mpd.representations, "representations were lost")
        }
        for id in mpd.representations.prefix(20) {
            if let segments = try? mpd.segments(of: id, at: .seconds(1_800_000_000)) { try check(segments) }
        }
        let chosen = mpd.choose(RenditionChoice(quality: .worst, audio: .all, subtitles: .all))
        if let edits = try mpd.edits(keeping: Set(chosen.representations), within: budget) {
            _ = try? MPD(edited(input, edits), at: base, within: budget)
        }
    }

    /// The first segments and the last.
    private static func check(_ segments: some SegmentSequence) throws {
        try hold(segments.count <= PlaylistLimits.segments, "\(segments.count) segments")
        for position in Set((0..<segments.count).prefix(20) + (0..<segments.count).suffix(20)) {
            let segment = segments[position]
            try hold(
                segment.duration >= .zero && segment.number >= 0,
                "a segment of \(segment.duration), number \(segment.number)")
            guard let url = segment.url else { continue }
            _ = try? segments.position(of: url, at: segment.range?.lowerBound, within: .ofMatch)
        }
    }

    private static func sidx(_ input: [UInt8]) throws {
        guard let index = try? SegmentIndexBox(input, at: 1000) else { return }
        for (entry, next) in zip(index.entries, index.entries.dropFirst()) {
            try hold(entry.range.upperBound == next.range.lowerBound, "segments with a hole between them")
        }
    }
}
