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

    @Test func whatIsNotJSONHasNone() { #expect(JSONShape("{\"a\": …}") == nil) }
}
