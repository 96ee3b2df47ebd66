import ControlAPI
import Testing

@Suite struct ControlJSONTests {
    /// Terminals obey C1, and what follows an override is read backwards. Joiners belong to words and emoji.
    @Test func whatTurnsTextAroundIsEscaped() throws {
        let turned = "\u{7F}\u{80}\u{9B}\u{2028}\u{2029}\u{202A}\u{202E}\u{2066}\u{2069}"
        let plain = "é€\u{A0}\u{2027}\u{202F}\u{2065}\u{206A}\u{200C}\u{200D}"
        let written = String(decoding: try ControlJSON.line([turned + plain]), as: UTF8.self)
        let escaped = #"\u007f\u0080\u009b\u2028\u2029\u202a\u202e\u2066\u2069"#
        #expect(written == "[\"\(escaped)\(plain)\"]\n")
        #expect(try ControlJSON.pretty([turned]).contains("\\u202e"))
        #expect(try ControlJSON.decode([String].self, from: written.utf8) == [turned + plain])
    }
}
