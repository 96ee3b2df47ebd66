import Testing

@testable import Configuration

@Suite struct EditDistanceTests {
    @Test(arguments: [
        ("", "", 0), ("a", "", 1), ("", "abc", 3), ("listen", "listen", 0), ("lisen", "listen", 1),
        ("kitten", "sitting", 3), ("max_size", "min_free", 5),
    ])
    func itCountsInsertionsRemovalsAndChanges(one: String, other: String, distance: Int) {
        #expect(EditDistance.between(one, other) == distance && EditDistance.between(other, one) == distance)
    }

    @Test(arguments: [
        ("lisent", "listen"), ("alow", "allow"), ("maxsize", "max_size"), ("xyz", nil), ("", nil), ("colour", nil),
    ])
    func theNearestWordIsNearOrNone(word: String, nearest: String?) {
        #expect(EditDistance.nearest(to: word, in: ["listen", "allow", "max_size", "log_level"]) == nearest)
    }
}
