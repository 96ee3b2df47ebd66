import Testing

@testable import Playlists

@Suite struct FeedFieldTests {
    /// 2002-10-02T13:00:00Z
    private static let moment: Int64 = 1_033_563_600

    @Test(arguments: [
        "Wed, 02 Oct 2002 13:00:00 GMT", "Wed, 02 Oct 2002 08:00:00 EST", "Wed, 02 Oct 2002 15:00:00 +0200",
        "Wed, 02 Oct 2002 06:00:00 PDT", "Thu, 02 Oct 2002 13:00:00 UT", "02 Oct 02 13:00 Z", "2 Oct 2002 13:00",
        "Wed, 02 Oct 2002 13:00:00 A", "Wed, 02 Oct 2002 13:00:00", "Wed Oct  2 13:00:00 2002",
        "Wednesday, 02-Oct-02 13:00:00 GMT", "Oct 2, 2002 1:00 PM", "Wed, 2nd October 2002 13:00:00 +0000 (UTC)",
        "Wed, 02 Oct 2002 15:00:00 GMT+0200", "Wed,02 Oct 2002 13:00:00 GMT", "Wed, 02 Oct 2002 13:00:00 +00:00",
        "Wed, 02 October 2002 13:00:00.123 GMT", "mer., 02 oct. 2002 13:00:00 GMT", "Mi, 02 Okt 2002 15:00:00 MESZ",
        "2 de octubre de 2002 13:00", "mer, 02 ott 2002 13:00:00 +0000", "qua, 2 out 2002 13:00:00 GMT",
        "wo 2 oktober 2002 13:00:00 GMT", "śr, 02 paź 2002 13:00:00 GMT", "Ср, 02 Окт 2002 13:00:00 GMT",
        "2002-10-02T13:00:00Z", "2002-10-02T15:00:00+02:00", "2002-10-02T13:00:00.000Z", "2002-10-02T13:00",
        "2002-10-02 13:00:00", "2002-10-02 13:00:00 UTC", "2002-10-02 15:00:00 +0200", "2002-10-02t13:00:00z",
        "20021002T130000Z", "2002/10/02 13:00", "2 Oct 2002 05:30 -0730", "2002-10-02T05:00-08", "2.10.2002 13:00",
        "10/2/2002 1:00:00 PM", "1033563600",
        "1033563600000", "  1033563600.25 ", "20021002130000", "200210021300", "2 října 2002 13:00",
    ]) func datesAreRead(text: String) {
        #expect(FeedDate.time(text)?.components.seconds == Self.moment)
    }

    @Test(arguments: [
        ("2002-10-02", 1_033_516_800), ("Wed, 02 Oct 2002", 1_033_516_800), ("20021002", 1_033_516_800),
        ("Tue, 01 Oct 2002 24:00:00 GMT", 1_033_516_800), ("2002-10", 1_033_430_400),
        ("mar., 5 mars 2002 00:00 GMT", 1_015_286_400), ("mar, 05 nov 2002 00:00 GMT", 1_036_454_400),
        ("12:30 AM 2 Oct 2002", 1_033_518_600), ("2 Oct 2002 12:00 pm", 1_033_560_000),
        ("Wed, 02 Oct 2002 00:00:60 GMT", 1_033_516_859), ("Fri, 31 Dec 99 23:59:59 GMT", 946_684_799),
        ("maandag 2 oktober 2023 00:00", 1_696_204_800), ("1 января 2024", 1_704_067_200),
        ("1. července 2024", 1_719_792_000), ("1 červenec 2024", 1_719_792_000), ("1. června 2024", 1_717_200_000),
        ("1 červen 2024", 1_717_200_000), ("946684799000", 946_684_799),
    ]) func datesWithLittleInThem(text: String, seconds: Int64) {
        #expect(FeedDate.time(text)?.components.seconds == seconds)
    }

    @Test(arguments: [
        "", "yesterday", "0", "2024", "31 Feb 2024 00:00:00", "2023-02-29", "0001-01-01T00:00:00Z", "2024-13-01",
        "Thu, 01 Jan 1970 00:00:00 GMT", "02 Oct 2002 25:00:00", "02 Oct 2002 12:61", "99999999999999999999", "::",
        "-- --", "1-2-3-4-5", "0-0-0", "10000-01-01",
        "20021302130000", "20021002250000",
        "99999999999999999999-99999999999999999999-9999999999", "+", "Oct Oct Oct",
    ]) func impossibleDatesAreNone(text: String) {
        #expect(FeedDate.time(text) == nil)
    }

    @Test func titlesAreBoundedLines() {
        #expect(FeedTitle.plain(String(repeating: "ab ", count: 9000))?.unicodeScalars.count == 500)
        #expect(FeedTitle.plain(" \u{1B}[31mx\r\n\u{200B}y\u{2028}z ") == "[31mx y z")
        #expect(FeedTitle.plain("\u{FEFF}\n\t ") == nil && FeedTitle.plain("<b></b>") == nil)
        #expect(FeedTitle.plain("👩\u{200D}🚀 a < b > c") == "👩\u{200D}🚀 a < b > c")
        #expect(FeedTitle.plain("R&#38;B &#x263A; &notanentity; &amp") == "R&B ☺ &notanentity; &amp")
    }

    @Test(arguments: [
        ("5", 5), ("Episode 5", 5), ("S02E05", 5), ("Episode 5 of 10", 5), ("Ep. 5 (of 10)", 5), ("Folge 5/10", 5),
        ("5 of 10", 5), ("S02/E05", 5), ("Season 2 Episode 5 of 10", 5), ("of 10", 10), ("none", nil),
    ]) func numbersOfEpisodesAreRead(text: String, number: Int?) throws {
        let feed = try Feed(FeedSamples.rss(FeedSamples.item("a", "<itunes:episode>\(text)</itunes:episode>")))
        #expect(feed.items.map(\.episode) == [number])
    }

    @Test func tagsWithoutAnEndAreText() { #expect(FeedTitle.plain("<b>x</b> <a <a") == "x <a <a") }

    @Test func aNoBreakSpaceOfKOI8IsOne() { #expect(CharacterTable.named("koi8-r")?.characters[0x1A] == 0xA0) }

    @Test(arguments: ["utf-16", "UTF-16LE", "utf8", "ISO-10646-UCS-2", "us-ascii"])
    func unicodeHasNoTable(label: String) {
        #expect(CharacterTable.named(label) == nil)
    }

    @Test(arguments: [
        ("<ttl>60</ttl>", 3600), ("<ttl>1</ttl>", 300), ("<ttl>99999999999999999999</ttl>", nil),
        ("<ttl>99999999</ttl>", 604_800), ("<sy:updatePeriod>\n hourly </sy:updatePeriod>", 3600),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>", 21600),
        ("<sy:updateFrequency>0</sy:updateFrequency>", nil), ("<sy:updatePeriod>never</sy:updatePeriod>", nil),
        ("<ttl>60</ttl><sy:updatePeriod>daily</sy:updatePeriod>", 86400), ("", nil),
    ]) func lifetimesAreBounded(xml: String, seconds: Int64?) throws {
        #expect(try Feed(FeedSamples.rss("", channel: xml)).lifetime?.components.seconds == seconds)
    }
}
