import CachePolicy
import Testing

@testable import CacheFill

@Suite struct ResourceTableTests {
    private var table = ResourceTable(capacity: 8)

    private static func key(_ number: Int) -> CacheKey { CacheKey(text: "https://example.com/\(number)") }

    @Test mutating func oneIsMadeAndThenFound() {
        let (resource, closed) = table.resource(Self.key(0))
        #expect(closed.isEmpty)
        #expect(table.resource(Self.key(0)).0 === resource)
        #expect(table.byKey[Self.key(0)] === resource && table.byKey.count == 1)
    }

    /// The longest unused go, and never the one that is just made.
    @Test mutating func beyondItsCapacityTheLongestUnusedAreClosed() {
        for number in 0..<8 { _ = table.resource(Self.key(number)) }
        _ = table.byKey[Self.key(0)]?.view()
        let (resource, closed) = table.resource(Self.key(8))
        #expect(closed.map(\.key) == [Self.key(1), Self.key(2)])
        #expect(table.byKey[Self.key(8)] === resource)
        #expect(table.byKey.count == 7)
    }

    @Test mutating func whatIsInUseStays() {
        let follower = FollowerID()
        for number in 0..<8 {
            let resource = table.resource(Self.key(number)).0
            if number < 7 {
                _ = resource.openAlone(
                    follower, at: 0, 0..<1, ResourceState.Reach(window: ReadAheadWindow(limit: 0), furthest: 0))
            }
        }
        #expect(table.resource(Self.key(8)).closed.map(\.key) == [Self.key(7)])
        #expect(table.resource(Self.key(9)).closed.map(\.key) == [Self.key(8)])
        #expect(table.byKey.count == 8)
    }

    @Test mutating func halfOrAllCanBeClosed() {
        for number in 0..<8 { _ = table.resource(Self.key(number)) }
        #expect(Set(table.closeHalf().map(\.key)) == Set((0..<4).map(Self.key)))
        #expect(table.closeAll().count == 4)
        #expect(table.byKey.count == 0)
    }
}
