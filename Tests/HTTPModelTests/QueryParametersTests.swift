import HTTPModel
import Testing

@Suite struct QueryParametersTests {
    @Test(arguments: [
        ("/a?url=https%3A%2F%2Fh%2Fa%3Fb%3D1%26c", "https://h/a?b=1&c"), ("/a?url=https://h/a?b=1", "https://h/a?b=1"),
        ("/a?x=1&url=a+b", "a+b"), ("/a?url=%2B%25%20", "+% "), ("/a?url", ""), ("/a?url=", ""), ("/a?&url=1&&", "1"),
        ("/a?u%72l=1", "1"),
        ("/a?url=%C3%BC", "ü"), ("/a?url=a=b", "a=b"),
    ])
    func valueIsDecodedOnce(target: String, url: String) throws {
        #expect(try QueryParameters(target: target)["url"] == url)
    }

    @Test(arguments: ["/a", "/a?", "/a?&", "/a?URL=1", "/a?url%3D1"]) func whatIsMissingIsNil(target: String) throws {
        #expect(try QueryParameters(target: target)["url"] == nil)
    }

    @Test(arguments: ["/a?url=%", "/a?url=%2", "/a?url=%zz", "/a?%=1", "/a?url=%FF", "/a?url=%C3"])
    func whatCannotBeDecodedIsRefused(target: String) {
        let error = #expect(throws: QueryParameters.Malformed.self) { try QueryParameters(target: target) }
        #expect(error?.reason.contains("%25") == true)
    }

    @Test(arguments: ["/a?url=1&url=1", "/a?url=1&u%72l=2", "/a?url&url"]) func aNameThatComesTwiceIsRefused(
        target: String
    ) {
        let error = #expect(throws: QueryParameters.Malformed.self) { try QueryParameters(target: target) }
        #expect(error?.reason == "the parameter url occurs twice")
    }

    @Test func unknownNamesAreTold() throws {
        #expect(try QueryParameters(target: "/a?url=1&y=2&X=3").names(except: ["url"]) == ["X", "y"])
        #expect(QueryParameters().names(except: []) == [])
    }

    @Test(arguments: ["https://h/a?b=1&c=d#e", "a b+c%41", "ü/日本", "", "-._~"]) func anEncodedValueReadsBack(
        value: String
    ) throws {
        let encoded = PercentEncoding.encodingReserved(value)
        #expect(encoded.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        #expect(try QueryParameters(target: "/?v=\(encoded)&w=1")["v"] == value)
    }
}
