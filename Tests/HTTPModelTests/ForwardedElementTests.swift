import HTTPModel
import Testing

/// `Forwarded` (RFC 7239 §4).
@Suite struct ForwardedElementTests {
    private static func element(_ client: String?, scheme: String? = nil, host: String? = nil) -> ForwardedElement {
        var element = ForwardedElement()
        (element.client, element.scheme, element.host) = (client, scheme, host)
        return element
    }

    @Test(
        arguments: [
            ("for=192.0.2.60", [element("192.0.2.60")]),
            (
                "for=192.0.2.60;proto=http;by=203.0.113.43;host=a.example",
                [element("192.0.2.60", scheme: "http", host: "a.example")]
            ),
            ("FOR=\"[2001:db8:cafe::17]:4711\"", [element("[2001:db8:cafe::17]:4711")]),
            ("for=192.0.2.43, for=198.51.100.17", [element("192.0.2.43"), element("198.51.100.17")]),
            ("for=unknown ; proto = https", nil), ("for=_hidden;proto=https", [element("_hidden", scheme: "https")]),
            ("for=\"_SEVKISEK\\\"\"", [element("_SEVKISEK\"")]),
            ("for=\"a, for=9.9.9.9\";proto=https", [element("a, for=9.9.9.9", scheme: "https")]),
            // As some proxies write them.
            ("for=192.0.2.60:80", [element("192.0.2.60:80")]), ("for=[2001:db8::1]:80", [element("[2001:db8::1]:80")]),
            (" for=a ; proto=https ,, for=b;", [element("a", scheme: "https"), element("b")]),
            ("secret=x;for=a", [element("a")]), ("", []), (",", []), (";", []),
        ] as [(String, [ForwardedElement]?)])
    func fieldIsRead(text: String, elements: [ForwardedElement]?) {
        #expect(ForwardedElement.parse(text) == elements)
    }

    @Test(arguments: [
        "for", "for=", "for=a;for=b", "for=\"a", "for=\"a, for=9.9.9.9;proto=https", "for=a b", "for=\"a\"b",
        "for=a,=b", "=a", "for=a\u{7F}", "for=a;proto=\"https", "for=a/b",
    ])
    func malformedFieldIsRefusedAsAWhole(text: String) {
        #expect(ForwardedElement.parse(text) == nil)
    }
}
