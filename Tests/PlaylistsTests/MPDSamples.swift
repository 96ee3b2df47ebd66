/// MPDs as ffmpeg 5.1 writes them, with one set each and without what says nothing about segments.
enum MPDSamples {
    static let timeline = """
        <?xml version="1.0" encoding="utf-8"?>
        <MPD xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
        \txmlns="urn:mpeg:dash:schema:mpd:2011"
        \txmlns:xlink="http://www.w3.org/1999/xlink"
        \tprofiles="urn:mpeg:dash:profile:isoff-live:2011"
        \ttype="static"
        \tmediaPresentationDuration="PT6.0S"
        \tmaxSegmentDuration="PT2.0S"
        \tminBufferTime="PT4.0S">
        \t<ProgramInformation>
        \t</ProgramInformation>
        \t<Period id="0" start="PT0.0S">
        \t\t<AdaptationSet id="0" contentType="video" segmentAlignment="true" frameRate="10/1">
        \t\t\t<Representation id="0" mimeType="video/mp4" codecs="avc1.f4000a" bandwidth="53197" width="64" height="48">
        \t\t\t\t<SegmentTemplate timescale="10240" initialization="init-stream$RepresentationID$.m4s" \
        media="chunk-stream$RepresentationID$-$Number%05d$.m4s" startNumber="1">
        \t\t\t\t\t<SegmentTimeline>
        \t\t\t\t\t\t<S t="0" d="20480" r="2" />
        \t\t\t\t\t</SegmentTimeline>
        \t\t\t\t</SegmentTemplate>
        \t\t\t</Representation>
        \t\t</AdaptationSet>
        \t\t<AdaptationSet id="1" contentType="audio" startWithSAP="1">
        \t\t\t<Representation id="1" mimeType="audio/mp4" codecs="mp4a.40.2" bandwidth="16000" audioSamplingRate="8000">
        \t\t\t\t<SegmentTemplate timescale="8000" initialization="init-stream$RepresentationID$.m4s" \
        media="chunk-stream$RepresentationID$-$Number%05d$.m4s" startNumber="1">
        \t\t\t\t\t<SegmentTimeline>
        \t\t\t\t\t\t<S t="0" d="15360" />
        \t\t\t\t\t\t<S d="16384" />
        \t\t\t\t\t\t<S d="16256" />
        \t\t\t\t\t</SegmentTimeline>
        \t\t\t\t</SegmentTemplate>
        \t\t\t</Representation>
        \t\t</AdaptationSet>
        \t</Period>
        </MPD>

        """

    static let numbers = mpd(
        """
        <Representation id="0" mimeType="video/mp4" codecs="avc1.f4000a" bandwidth="53197" width="64" height="48">
        <SegmentTemplate timescale="1000000" duration="2000000" initialization="init-stream$RepresentationID$.m4s" \
        media="chunk-stream$RepresentationID$-$Number%05d$.m4s" startNumber="1">
        </SegmentTemplate>
        </Representation>
        """)

    static let singleFile = mpd(
        """
        <Representation id="0" mimeType="video/mp4" codecs="avc1.f4000a" bandwidth="53101" width="64" height="48">
        <BaseURL>i-stream0.mp4</BaseURL>
        <SegmentList timescale="1000000" duration="2000000" startNumber="1">
        <Initialization range="0-811" />
        <SegmentURL mediaRange="812-13743" indexRange="812-863" />
        <SegmentURL mediaRange="13744-26837" indexRange="13744-13795" />
        <SegmentURL mediaRange="26838-39825" indexRange="26838-26889" />
        </SegmentList>
        </Representation>
        """)

    /// The `sidx` box of a file of ffmpeg's (`-global_sidx`), at offset 816.
    static let segmentIndex =
        "0000004c736964780100000000000001000028000000000000000000000000000000000000000003"
        + "000032500000500080000000000032f20000500080000000000032880000500080000000"

    /// One set in one period of six seconds.
    static func mpd(
        _ set: String, attributes: String = "mediaPresentationDuration=\"PT6S\"", setAttributes: String = ""
    ) -> String {
        """
        <?xml version="1.0" encoding="utf-8"?>
        <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" \(attributes)>
        <Period><AdaptationSet contentType="video" \(setAttributes)>
        \(set)
        </AdaptationSet></Period></MPD>
        """
    }
}
