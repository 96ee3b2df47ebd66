import CachePolicy
import Testing

@testable import Playlists

@Suite struct PlaylistKindTests {
    @Test(
        arguments: [
            ("application/vnd.apple.mpegurl", .hls), ("Application/X-MPEGURL; charset=utf-8", .hls),
            ("audio/mpegurl", .hls), ("audio/x-mpegurl ;x", .hls),
            ("application/dash+xml;profiles=x", .dash), ("application/xml", nil), ("text/plain", nil),
            ("video/mp2t", nil), ("", nil),
        ] as [(String, PlaylistKind?)])
    func mediaTypesTellTheKind(type: String, kind: PlaylistKind?) {
        #expect(PlaylistKind(mediaType: type) == kind)
    }

    @Test(
        arguments: [
            ("#EXTM3U", .hls), ("#EXTM3U\r\n", .hls), ("\u{FEFF}#EXTM3U\n", .hls), ("#EXTM3U url-tvg=\"x\"\n", .hls),
            ("#EXTM3U8\n", nil), ("\r\n \u{FEFF}\n#EXTM3U", .hls), ("x #EXTM3U", nil),
            ("#EXTM3", nil), ("<MPD", .dash), ("<MPD/>", .dash),
            ("<?xml version=\"1.0\"?>\n<!-- <a> -->\n<?x?><x:MPD xmlns:x=\"y\">", .dash),
            ("\u{FEFF}\n<MPD>", .dash), ("<MPDX>", nil), ("<html><MPD>", nil), ("<!DOCTYPE html>", nil), ("<!-- ", nil),
            ("", nil), ("<", nil), ("MPD", nil),
            ("<!--" + String(repeating: " ", count: PlaylistKind.sniffedBytes) + "--><MPD>", nil),
        ] as [(String, PlaylistKind?)])
    func beginningsTellTheKind(text: String, kind: PlaylistKind?) {
        #expect(PlaylistKind.sniff(bytes(text)) == kind)
    }

    @Test(arguments: [
        ("4", 4000), ("4.004", 4004), ("0.5", 500), ("1.0000000001", 1000), ("5.", 5000), ("", nil), ("-1", nil),
        (".5", nil), ("1e3", nil), ("1.x", nil),
        ("4000000001", nil), ("99999999999999999999", nil),
    ])
    func secondsAreRead(text: String, milliseconds: Int?) {
        #expect(MediaNumbers.seconds(text.utf8) == milliseconds.map { .milliseconds($0) })
    }

    @Test(
        arguments: [
            ("PT6.0S", 6.0), ("PT1H2M3.5S", 3723.5), ("P1DT1S", 86401), ("P1Y2M", 31_536_000 + 2 * 2_592_000),
            ("PT0S", 0), (" PT2M ", 120), ("P", nil), ("PT", nil),
            ("6S", nil), ("PT6", nil), ("PTS", nil), ("-PT6S", nil), ("PT6S6M", nil), ("PT6M6M", nil), ("P6S", nil),
            ("P1W", nil), ("P1000000Y", nil),
            ("PT99999999999999999999S", nil), ("P1DT", nil),
        ] as [(String, Double?)])
    func durationsAreRead(text: String, seconds: Double?) {
        #expect(ISO8601.duration(text) == seconds.map { .seconds($0) })
    }

    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0.0), ("2026-02-28T23:59:59.5Z", 1_772_323_199.5),
            ("1970-01-02T01:00:00+01:00", 86400), ("1969-12-31T23:00:00-01:00", 0),
            ("2024-02-29T00:00:00", 1_709_164_800), ("2023-02-29T00:00:00Z", nil), ("2024-02-29", nil), ("T", nil),
            ("", nil), ("2024-13-01T00:00:00Z", nil),
            ("2024-01-01T25:00:00Z", nil), ("2024-01-01T00:00:00+99:00", nil), ("99999-01-01T00:00:00Z", nil),
            ("2024-01-01T00:00:00Zx", nil),
        ] as [(String, Double?)])
    func datesAreRead(text: String, seconds: Double?) {
        #expect(ISO8601.dateTime(text) == seconds.map { .seconds($0) })
    }

    @Test func editsThatOverlapAreMadeOnce() {
        let edits = [
            AddressEdit(range: 2..<4, replacement: "x"), AddressEdit(range: 2..<6, replacement: ""),
            AddressEdit(range: 5..<7, replacement: "y"),
        ]
        #expect(
            (edits + [AddressEdit(range: 8..<8, replacement: "-"), AddressEdit(range: 9..<11, replacement: "!")])
                .applied(to: bytes("0123456789")).text == "0167-89")
        #expect([AddressEdit]().applied(to: []) == [])
    }
}
