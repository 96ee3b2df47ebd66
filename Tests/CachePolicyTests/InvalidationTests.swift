import CachePolicy
import HTTPModel
import Testing

/// RFC 9111 §4.4
@Suite struct InvalidationTests {
    private static func targets(_ fields: HeaderFields = [], method: RequestMethod = .other("PUT"), status: Int = 200)
        throws -> [String]
    {
        let url = try OriginURL(url: "https://a/x/y?q")
        return Invalidation.targets(method: method, status: status, url: url, fields: fields).map(\.absolute)
    }

    // RFC 9110 §9.2.1. Of what is not known to be safe it is assumed that it changes something; names have case.
    @Test(arguments: [
        ("PUT", true), ("POST", true), ("DELETE", true), ("PATCH", true), ("FROBNICATE", true), ("get", true),
        ("TRACE", false), ("PROPFIND", false), ("QUERY", false),
        ("SEARCH", false), ("REPORT", false), ("PRI", false),
    ])
    func unsafeMethodInvalidatesItsTarget(name: String, invalidates: Bool) throws {
        #expect(try Self.targets(method: .other(name)) == (invalidates ? ["https://a/x/y?q"] : []))
    }

    @Test(arguments: [RequestMethod.get, .head, .options])
    func safeMethodInvalidatesNothing(method: RequestMethod) throws {
        #expect(try Self.targets(["Location: /z"], method: method) == [])
    }

    @Test func onlySuccessDoes() throws {
        for status in 100...599 {
            #expect(try Self.targets(status: status).isEmpty == !(200...399 ~= status), "\(status)")
        }
    }

    @Test(
        arguments: [
            ([], []), (["Location: /z"], ["https://a/z"]), (["Content-Location: z"], ["https://a/x/z"]),
            (["Content-Location: /1", "Location: /2"], ["https://a/2", "https://a/1"]),
            (["Location: https://A:443/z"], ["https://a/z"]), (["Location: //a/z"], ["https://a/z"]),
            // Another origin: its scheme, host or port differs.
            (["Location: http://a/z"], []), (["Location: https://b/z"], []), (["Location: https://a:444/z"], []),
            (["Location: //b/z"], []), (["Location: mailto:a@b"], []),
            // Named twice, or the target itself.
            (["Location: /z", "Content-Location: ./../%7A"], ["https://a/z"]), (["Location: ?q"], []),
            (["Location: "], []), (["Location: y?q#f"], []),
            (["Location: /a b"], []),
        ] as [(HeaderFields, [String])])
    func whatTheAnswerNamesInTheSameOriginGoesToo(fields: HeaderFields, more: [String]) throws {
        #expect(try Self.targets(fields, status: 201) == ["https://a/x/y?q"] + more)
    }
}
