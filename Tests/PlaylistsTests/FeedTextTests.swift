import Testing

@testable import Playlists

@Suite struct FeedTextTests {
    @Test func placesOfAMappedTextLeadBackToTheSource() {
        let source = bytes("ab & cd<!-- x -->ef")
        var map = MappedText()
        map.copy(0..<3, of: source)
        map.write("&amp;".utf8, for: 3..<4)
        map.copy(4..<7, of: source)
        map.copy(17..<19, of: source)
        map.write("!".utf8, for: 19..<19)
        #expect(map.bytes.text == "ab &amp; cdef!")
        #expect(map.source(of: 0..<2) == 0..<2 && map.source(of: 0..<8) == 0..<4 && map.source(of: 9..<11) == 5..<7)
        // A part that is left out belongs neither to the text before it nor to the text after it.
        #expect(map.source(of: 8..<11) == 4..<7 && map.source(of: 11..<13) == 17..<19)
        #expect(
            map.source(of: 8..<13) == 4..<19 && map.source(of: 13..<14) == 19..<19 && map.source(of: 0..<0) == 0..<0)
    }

    private static func repaired(_ text: String) throws -> String {
        try XMLRepair(bytes(text), from: 0, .utf8, .large).text.bytes.text
    }

    @Test(arguments: [
        ("<a>x & y &lt; &eacute; &#1;</a>", "<a>x &amp; y &lt; &#233;  </a>"), ("<a><b>x</a>", "<a><b>x</b></a>"),
        ("<a></b></a> junk <c>", "<a></a>"), ("<a>1<2 <3</a>", "<a>1&lt;2 &lt;3</a>"),
        ("<a><item><b><item></a>", "<a><item><b></b></item><item></item></a>"),
        ("<a x=1 y='2'z/>", "<a x=\"1\" y='2'/>"),
        ("<a x=\"1\" x=\"2\">", "<a x=\"1\"></a>"), ("<a><b c=\"", "<a></a>"),
        ("<a><![CDATA[x", "<a><![CDATA[x]]></a>"),
        ("<!DOCTYPE a [<!ENTITY b \">\">]><a>&b;</a>", "<a>&amp;b;</a>"), ("<a><!-- -- --></a>", "<a></a>"),
        ("<a><br><p>1<p>2</a>", "<a><br></br><p>1</p><p>2</p></a>"), ("<A></a>", "<A></A>"),
        ("<a>1<b, c <d <e@f> <g'></a>", "<a>1&lt;b, c <d>&lt;e@f> &lt;g'></d></a>"),
        ("<a foo,bar=\"x\" y=\"1\">\u{E9}<\u{E9}></a>", "<a y=\"1\">\u{E9}&lt;\u{E9}></a>"),
        ("<a>]]<!-- x -->> ]<!-- x -->]></a>", "<a>]]&gt; ]&#93;></a>"),
        ("<?xml version=\"1.0\"><a><?b x ?>1<?c>2</a>", "<a>12</a>"), ("<a><?b", "<a></a>"),
        ("<a href=http://h/x/>", "<a href=\"http://h/x\"/>"), ("<a><b <c></a>", "<a><b><c></c></b></a>"),
    ]) func mistakesAreRepaired(text: String, expected: String) throws {
        #expect(try Self.repaired(text) == expected)
    }

    @Test func endTagsWithoutMistakesAreNotChanges() throws {
        let text = "<a>" + String(repeating: "<b>x</b>", count: 1000) + "</a>"
        let repair = try XMLRepair(bytes(text), from: 0, .utf8, .large)
        #expect(repair.text.bytes.text == text && repair.text.pieces == 1)
    }

    @Test func wellFormedTextStays() throws {
        let text = "<a x=\"1\" y='2'>b &amp; c<![CDATA[ & < ]]><d/><e>é</e></a>"
        #expect(try Self.repaired(text) == text)
    }
}
