import Testing

@testable import HTTPTransport

/// When to look for connections that can be closed.
@Suite struct RoomSearchTests {
    @Test func thereIsAPauseAfterALookThatFoundNothing() {
        var search = RoomSearch()
        #expect(search.isDue(0))
        search.foundNothing(5)
        #expect(!search.isDue(5) && !search.isDue(4 + RoomSearch.pause) && search.isDue(5 + RoomSearch.pause))
        search.foundSome()
        #expect(search.isDue(5))
        search.foundNothing(.max)
        #expect(search.isDue(.max))
    }
}
