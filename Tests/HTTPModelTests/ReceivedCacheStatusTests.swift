import Testing

@testable import HTTPModel

/// What is read from `Cache-Status` of caches behind this one, and what is passed on of it.
@Suite struct ReceivedCacheStatusTests {
    @Test(arguments: [
        ("reelcache; hit; ttl=5", "reelcache; hit; ttl=5"),
        (" Origin;hit ,\t\"a, b\";fwd=miss;fwd-status=200", "Origin;hit, \"a, b\";fwd=miss;fwd-status=200"),
        (
            "a; detail=\"x\\\"; y\", b; key=:aGk=:; x=1.5; y=?0; z=-3",
            "a; detail=\"x\\\"; y\", b; key=:aGk=:; x=1.5; y=?0; z=-3"
        ),
    ]) func membersArePassedOn(field: String, forwarded: String) {
        #expect(ReceivedCacheStatus(parsing: field)?.forwarded == forwarded)
    }

    @Test(arguments: [
        "", ",", "a,", "a b", "a; hit,", "a; =1", "a; hit=", "\"open", "5", "a;;b", "a; x=:open", "a; X=1",
    ])
    func whatIsNoListIsNot(field: String) { #expect(ReceivedCacheStatus(parsing: field) == nil) }

    @Test func membersNearestToThisCacheStay() {
        let many = ReceivedCacheStatus(parsing: (1...20).map { "c\($0)" }.joined(separator: ", "))
        #expect(many?.forwarded == (13...20).map { "c\($0)" }.joined(separator: ", "))
        let long = ReceivedCacheStatus(parsing: "a; detail=\"\(String(repeating: "x", count: 600))\", b; hit")
        #expect(long?.forwarded == "b; hit")
    }

    @Test func fieldIsReplacedInPlace() {
        var fields = HeaderFields()
        fields.append("Cache-Status", "a; hit")
        fields.append("cache-status", "b; fwd=miss")
        fields.boundCacheStatus()
        #expect(fields.lines.map(\.value) == ["a; hit, b; fwd=miss"])
        fields.replace("Cache-Status", "no list,")
        fields.boundCacheStatus()
        #expect(fields.lines.isEmpty)
    }
}
