import CachePolicy
import Testing

@testable import Playlists

@Suite struct MPDRewritingTests {
    private static func rewritten(_ text: String, at base: String = "https://cdn.example/d/i.mpd", asked: String? = nil)
        throws -> String
    {
        let client = ProxyForm.local(OriginURL(asked ?? base))
        return try MPD(text, at: base).edits(for: .local, at: client).applied(to: bytes(text)).text
    }

    static let everyAddress = """
        \u{FEFF}<?xml version='1.0'?>\r
        <!-- a comment with <BaseURL>/x</BaseURL> -->\r
        <m:MPD xmlns:m="urn:mpeg:dash:schema:mpd:2011" xmlns:xlink="http://www.w3.org/1999/xlink" type = "dynamic">
        <m:Location> /live/i.mpd?a=1&amp;b=2 </m:Location><m:PatchLocation>/patch</m:PatchLocation>
        <m:ContentSteering defaultServiceLocation="a">/steer</m:ContentSteering>
        <m:UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value="/time time2"/>
        <m:UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="/time"/>
        <m:BaseURL serviceLocation="a">https://media.example/x/</m:BaseURL>
        <m:Period xlink:href='/p.xml' xlink:actuate='onRequest'><m:EventStream xlink:href="/e.xml"/>
        <m:AdaptationSet><ContentProtection licence="/licence"><BaseURL>/inside</BaseURL></ContentProtection>
        <m:SegmentTemplate duration="1" media='/$RepresentationID$/"$Number%05d$.m4s?a=1&amp;b=&apos;' \
        initialization="init-$Bandwidth$.mp4" index="/i$$"/>
        <m:Representation id="a"><m:BaseURL>a/</m:BaseURL></m:Representation></m:AdaptationSet>
        <m:AdaptationSet><m:SegmentList><m:Initialization sourceURL="/init" range="0-1"/><m:BitstreamSwitching \
        sourceURL="/bs"/>
        <m:SegmentURL media="/1" index="/1i"/><m:SegmentURL mediaRange="0-1"/></m:SegmentList><m:Representation \
        id="b"/></m:AdaptationSet>
        <m:AdaptationSet><m:Representation id="c"><m:SegmentBase><m:RepresentationIndex \
        sourceURL="/c.idx"/></m:SegmentBase></m:Representation>
        </m:AdaptationSet></m:Period><m:Period xlink:href="urn:mpeg:dash:resolve-to-zero:2013"/><unknown \
        url="/unknown"/></m:MPD>
        """

    @Test func eachAddressIsRewrittenAndNothingElse() throws {
        var expected = Self.everyAddress
        for (from, to) in [
            ("> /live/i.mpd?a=1&amp;b=2 <", ">D/live/i.mpd?a=1&amp;b=2<"), (">/patch<", ">D/patch<"),
            (">/steer<", ">D/steer<"),
            ("2014\" value=\"/time time2\"", "2014\" value=\"M/time M/x/time2\""),
            (">https://media.example/x/<", ">M/x/<"), ("'/p.xml'", "'D/p.xml'"),
            ("\"/e.xml\"", "\"D/e.xml\""),
            ("'/$RepresentationID$/\"$Number%05d$", "'M/$RepresentationID$/%22$Number%05d$"),
            ("\"/i$$\"", "\"M/i$$\""), ("\"/init\"", "\"M/init\""), ("\"/bs\"", "\"M/bs\""), ("\"/1\"", "\"M/1\""),
            ("\"/1i\"", "\"M/1i\""),
            ("\"/c.idx\"", "\"M/c.idx\""),
        ] {
            #expect(expected.contains(from))
            expected = expected.replacing(
                from,
                with: to.replacing("D/", with: "http://player.lan:7335/https/cdn.example/")
                    .replacing("M/", with: "http://player.lan:7335/https/media.example/"))
        }
        // The relative time server's base is another once BaseURL is rewritten, and so it stays.
        expected = expected.replacing("http://player.lan:7335/https/media.example/x/time2", with: "time2")
        #expect(try Self.rewritten(Self.everyAddress) == expected)
    }

    // What ffmpeg writes has relative addresses: all stays. Behind a redirect all becomes absolute, and what stands
    // between dollar signs stays.
    @Test func packagersTextStaysAsItIs() throws {
        for text in [MPDSamples.timeline, MPDSamples.numbers, MPDSamples.singleFile] {
            #expect(try Self.rewritten(text) == text)
        }
        let redirected = try Self.rewritten(MPDSamples.timeline, asked: "https://other.example/x.mpd")
        #expect(
            redirected
                == MPDSamples.timeline.replacing("=\"init", with: "=\"http://player.lan:7335/https/cdn.example/d/init")
                .replacing("=\"chunk", with: "=\"http://player.lan:7335/https/cdn.example/d/chunk"))
    }

    @Test func behindARedirectABaseIsWrittenOnceAndItsChildrenStay() throws {
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><BaseURL>v/</BaseURL><SegmentTemplate media=\"$Number$\"/></Representation>")
        #expect(
            try Self.rewritten(text, asked: "https://other.example/x.mpd")
                == text.replacing(">v/<", with: ">http://player.lan:7335/https/cdn.example/d/v/<"))
    }

    // What a set says about segments is resolved against the bases of its representations, not against its own.
    @Test func addressesOfASetAreThoseOfItsRepresentations() throws {
        let text = MPDSamples.mpd(
            "<SegmentTemplate media=\"$Number$\" initialization=\"/i\"/>"
                + "<Representation id=\"a\"><BaseURL>https://far.example/x/</BaseURL></Representation>"
                + "<Representation id=\"b\"><BaseURL>https://far.example/y/</BaseURL></Representation>")
        let written = try Self.rewritten(text, asked: "https://other.example/x.mpd")
        let expected = text.replacing("https://far.example/", with: "http://player.lan:7335/https/far.example/")
            .replacing("\"/i\"", with: "\"http://player.lan:7335/https/far.example/i\"")
        #expect(written == expected)
    }

    // A dollar sign of the base's path would be read as an identifier's.
    @Test func dollarSignsOfABaseAreEscapedInTemplates() throws {
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><SegmentTemplate media=\"$Number$.m4s\"/>"
                + "<SegmentList><SegmentURL media=\"x\"/></SegmentList></Representation>"
        )
        let written = try Self.rewritten(
            text, at: "https://cdn.example/a$b/i.mpd", asked: "https://other.example/x.mpd")
        #expect(written.contains("media=\"http://player.lan:7335/https/cdn.example/a$$b/$Number$.m4s\""))
        #expect(written.contains("media=\"http://player.lan:7335/https/cdn.example/a$b/x\""))
    }

    @Test func basesThatCannotBeFetchedAreLeftAlone() throws {
        for base in ["data:text/plain,x", "https://user:secret@h/", "ftp://h/"] {
            let text = MPDSamples.mpd(
                "<Representation id=\"a\"><BaseURL>\(base)</BaseURL>"
                    + "<SegmentTemplate media=\"/$Number$\"/></Representation>"
            )
            #expect(try Self.rewritten(text) == text)
        }
    }

    /// The property that rewriting is for, through all levels: clients arrive at the proxy's form of what is meant.
    @Test(arguments: ["", "x/", "/y/", "//other.example/z/", "https://far.example/q", "../../..", "?x"])
    func clientsArriveAtTheProxysForm(reference: String) throws {
        for (asked, inner) in [nil, "https://elsewhere.example/a/b/c.mpd"].flatMap({ asked in
            ["", "i/", "/j/", "../k?l"].map { (asked, $0) }
        }) {
            let text = """
                <MPD mediaPresentationDuration="PT4S"><BaseURL>\(reference)</BaseURL><Period><SegmentTemplate \
                media="$Number$/../s" duration="2"/>
                <AdaptationSet><BaseURL>\(inner)</BaseURL><Representation id="a"/><Representation \
                id="b"><BaseURL>b/</BaseURL></Representation>
                <Representation id="c"><SegmentList duration="2"><Initialization sourceURL="../i"/><SegmentURL \
                media="/m"/><SegmentURL/></SegmentList>
                </Representation></AdaptationSet></Period></MPD>
                """
            let base = OriginURL("https://cdn.example/d/i.mpd"),
                client = ProxyForm.local(asked.map { OriginURL($0) } ?? base)
            let mpd = try MPD(bytes(text), at: base),
                seen = try MPD(mpd.edits(for: .local, at: client).applied(to: bytes(text)), at: client)
            for id in mpd.representations {
                let meant = try mpd.segments(of: id), found = try seen.segments(of: id)
                #expect(
                    found.all.map(\.url) == meant.all.map { $0.url.map { ProxyForm.local($0) } },
                    "\(reference) \(inner) \(String(describing: asked))")
                #expect(
                    found.initializations.map(\.url) == meant.initializations.map { $0.url.map { ProxyForm.local($0) } }
                )
            }
        }
    }

    @Test func rewrittenTextIsBounded() throws {
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><SegmentList>" + String(repeating: "<SegmentURL media=\"a\"/>", count: 4500)
                + "</SegmentList></Representation>")
        let mpd = try MPD(text, at: "https://h/" + String(repeating: "x", count: 8000) + "/")
        #expect(failure { _ = try mpd.edits(for: .local, at: OriginURL("https://other/")) }?.kind == .tooLarge)
    }

    @Test func renditionsThatAreNotKeptAreRemoved() throws {
        let text =
            "<MPD><Period><AdaptationSet><Representation id=\"a\"/>"
            + "<Representation id=\"b\"></Representation></AdaptationSet>"
            + "<AdaptationSet><Representation id=\"c\"/></AdaptationSet></Period>"
            + "<Period><AdaptationSet><Representation id=\"d\"/></AdaptationSet></Period></MPD>"
        let mpd = try MPD(text), all = mpd.representations
        func kept(_ places: [Int]) -> String? {
            (try? mpd.edits(keeping: Set(places.map { all[$0] }))).flatMap(\.self)?.applied(to: bytes(text)).text
        }
        #expect(kept([0, 1, 2, 3]) == text && kept([]) == nil)
        #expect(
            kept([1, 3])
                == "<MPD><Period><AdaptationSet><Representation id=\"b\"></Representation></AdaptationSet></Period>"
                + "<Period><AdaptationSet><Representation id=\"d\"/></AdaptationSet></Period></MPD>")
        #expect(kept([2]) == "<MPD><Period><AdaptationSet><Representation id=\"c\"/></AdaptationSet></Period></MPD>")
    }

    @Test func removingAndRewritingGoTogether() throws {
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><BaseURL>/a</BaseURL></Representation>"
                + "<Representation id=\"b\"><BaseURL>/b</BaseURL></Representation>"
        )
        let mpd = try MPD(text)
        let edits =
            try mpd.edits(for: .local, at: ProxyForm.local(mpd.base))
            + (mpd.edits(keeping: [mpd.representations[1]]) ?? [])
        #expect(
            edits.applied(to: bytes(text)).text
                == text.replacing("<Representation id=\"a\"><BaseURL>/a</BaseURL></Representation>", with: "")
                .replacing(">/b<", with: ">http://player.lan:7335/https/cdn.example/b<"))
    }
}
