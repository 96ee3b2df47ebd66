import HTTPModel
import Testing

@Suite struct ViaTests {
    @Test(arguments: [
        ("1.1 reelcache-3f", true), ("1.0 other, 1.1 reelcache-3f", true), ("HTTP/1.1 REELCACHE-3F (comment)", true),
        ("1.1\treelcache-3f ,1.1 x", true),
        ("1.1 reelcache-3f2", false), ("1.1 reelcache", false), ("reelcache-3f", false),
        ("1.1 x (reelcache-3f)", false), ("", false), (",", false),
    ])
    func proxyKnowsItsOwnName(field: String, isNamed: Bool) {
        #expect(Via(pseudonym: "reelcache-3f").isNamed(in: field) == isNamed)
    }

    @Test func elementIsFoundAgain() {
        let via = Via(pseudonym: "reelcache-0")
        #expect(via.element == "1.1 reelcache-0")
        #expect(via.isNamed(in: via.element))
    }
}
