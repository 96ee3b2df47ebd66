import Testing

/// When two pieces of JSON have the same names.
@Suite struct JSONShapeTests {
    @Test(arguments: [
        (#"{"a": 1, "b": "x"}"#, #"{"b": "y", "a": 2.5}"#, true), (#"{"a": 1}"#, #"{"a": "1"}"#, false),
        (#"{"a": 1}"#, #"{"a": true}"#, false), (#"{"a": 1}"#, #"{"a": 1, "b": 1}"#, false),
        (#"[{"a": [1]}]"#, #"[{"a": [2, 3]}, {}]"#, true), (#"[{"a": 1}]"#, "[]", false), ("null", "null", true),
    ])
    func namesAndKindsCount(one: String, other: String, areAlike: Bool) {
        #expect((JSONShape(one) == JSONShape(other)) == areAlike)
        #expect(JSONShape(one) != nil)
    }

    @Test(arguments: [
        (#"{"a": 1, "b": [{"c": "x", "d": true}]}"#, #"{"b": [{"c": "y"}]}"#, true),
        (#"{"b": [1]}"#, #"{"b": []}"#, true),
        (#"{"a": 1}"#, #"{"a": 1, "b": 1}"#, false), (#"{"b": []}"#, #"{"b": [1]}"#, false),
        (#"{"a": 1}"#, #"{"a": "1"}"#, false),
    ])
    func moreMayBeShownThanIsPrinted(shown: String, printed: String, covers: Bool) throws {
        let one = try #require(JSONShape(shown)), other = try #require(JSONShape(printed))
        #expect(one.covers(other) == covers)
    }

    @Test func whatIsNotJSONHasNone() { #expect(JSONShape("{\"a\": …}") == nil) }
}
