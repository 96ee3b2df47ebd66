import HTTPModel
import Testing

@Suite struct EntityTagTests {
    @Test(arguments: [
        ("\"a\"", false, "a"), ("W/\"a\"", true, "a"), ("\"\"", false, ""), (" \"a,b\\c\" ", false, "a,b\\c"),
        ("\"\u{E9}\"", false, "\u{E9}"),
        ("\"W/a\"", false, "W/a"),
    ])
    func tagIsRead(field: String, isWeak: Bool, opaque: String) throws {
        let tag = try #require(EntityTag(parsing: field))
        #expect(tag.isWeak == isWeak)
        #expect(tag.opaque == opaque)
        #expect(EntityTag(parsing: tag.fieldValue) == tag)
    }

    @Test(arguments: [
        "", "a", "\"a", "a\"", "w/\"a\"", "W/a", "W/", "\"a b\"", "\"a\"b", "\"a\", \"b\"", "*", "W \"a\"",
        "\"a\u{7F}\"",
    ])
    func whatIsNoTagIsRefused(field: String) {
        #expect(EntityTag(parsing: field) == nil)
    }

    // The table of RFC 9110 §8.8.3.2.
    @Test(arguments: [
        ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false), ("W/\"1\"", "\"1\"", false, true),
        ("\"1\"", "\"1\"", true, true),
        ("\"1\"", "W/\"1\"", false, true), ("\"\u{E9}\"", "\"e\u{301}\"", false, false),
    ])
    func tagsAreCompared(a: String, b: String, strongly: Bool, weakly: Bool) throws {
        let a = try #require(EntityTag(parsing: a))
        let b = try #require(EntityTag(parsing: b))
        #expect(a.stronglyMatches(b) == strongly)
        #expect(a.weaklyMatches(b) == weakly)
        #expect((a == b) == (weakly && a.isWeak == b.isWeak))
    }

    @Test(arguments: [
        ("\"a\"", ["\"a\""]), ("\"a\", W/\"b\" ,\"c\"", ["\"a\"", "W/\"b\"", "\"c\""]),
        ("\"a,b\",\"c\"", ["\"a,b\"", "\"c\""]),
        (",, \"a\" ,", ["\"a\""]), ("x, \"a\"", ["\"a\""]), ("\"a\" x, \"b\"", ["\"b\""]), ("\"a", []), ("", []),
        ("*, \"a\"", ["\"a\""]),
    ])
    func listIsRead(field: String, tags: [String]) {
        #expect(EntityTag.parseList(field) == .tags(tags.compactMap(EntityTag.init(parsing:))))
    }

    @Test func starMeansAny() {
        #expect(EntityTag.parseList(" * ") == .any)
    }
}
