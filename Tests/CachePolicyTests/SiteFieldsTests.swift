import CachePolicy
import HTTPModel
import Testing

@Suite struct SiteFieldsTests {
    @Test(arguments: [
        ("Content-Security-Policy", true), ("content-security-policy-report-only", true), ("Service-Worker-Allowed", true), ("Clear-Site-Data", true),
        ("Alt-Svc", true), ("Refresh", true), ("Strict-Transport-Security", true), ("NEL", true), ("Report-To", true), ("Public-Key-Pins", true),
        ("Set-Cookie", true), ("X-Content-Type-Options", true), ("Access-Control-Allow-Origin", true), ("ACCESS-CONTROL-X", true),
        ("Content-Type", false), ("ETag", false), ("Vary", false), ("X-Access-Control-Allow-Origin", false), ("", false),
    ])
    func originSpeaksForItsSite(name: String, isOfSite: Bool) {
        #expect(SiteFields.isOfOrigin(name) == isOfSite)
    }

    @Test(arguments: [
        ("Origin", true), ("Referer", true), ("Forwarded", true), ("X-Forwarded-For", true), ("x-forwarded-PROTO", true), ("X-HTTP-Method", true),
        ("X-HTTP-Method-Override", true), ("X-Method-Override", true), ("X-Original-URL", true), ("X-Rewrite-URL", true), ("User-Agent", false),
        ("Accept", false), ("X-Forwarded", false), ("Authorization", false),
    ])
    func clientTellsOfThePage(name: String, isOfClient: Bool) {
        #expect(SiteFields.isOfClient(name) == isOfClient)
    }

    @Test(arguments: [CrossOrigin.everyone, .only("http://nas.local"), .nobody])
    func pathFormConfinesWhoeverMayReadIt(pages: CrossOrigin) {
        let fields = SiteFields.inPathForm(readableBy: pages)
        #expect(fields["Content-Security-Policy"] == "sandbox" && fields["X-Content-Type-Options"] == "nosniff")
        #expect(fields.lines.dropFirst(2) == pages.fields.lines[...])
    }

    @Test(arguments: [
        (["https://a/x/"], false, true), (["https://a/x/", "https://a/y/"], false, true), (["https://a/x/"], true, false), ([], false, false),
        (["https://a/", "https://b/"], false, false), (["https://a/", "http://a/"], false, false), (["https://a/", "https://a:8443/"], false, false),
    ])
    func mountsOfOneOriginAreOneSite(origins: [String], anyOrigin: Bool, isOneSite: Bool) throws {
        var policy = ProxyPolicy()
        policy.servesAnyOrigin = anyOrigin
        policy.mounts = try origins.enumerated().map { Mount(path: "/\($0)/", origin: try OriginURL(url: $1)) }
        #expect(policy.isOneSite == isOneSite)
    }

    @Test(arguments: [
        ([], false), (["Origin: http://127.0.0.1:7335"], false), (["Origin: HTTPS://127.0.0.1:7335"], false), (["Sec-Fetch-Site: same-origin"], false),
        (["Sec-Fetch-Site: none"], false), (["Origin: null"], true), (["Origin: http://127.0.0.1"], true), (["Origin: http://127.0.0.1:7336"], true),
        (["Origin: http://localhost:7335"], true), (["Origin: "], true), (["Sec-Fetch-Site: cross-site"], true),
        (["Origin: http://127.0.0.1:7335", "Sec-Fetch-Site: cross-site"], true),
    ])
    func pageOfAnotherHostIsForeign(fields: [String], isForeign: Bool) throws {
        let bytes = Array((["POST / HTTP/1.1", "Host: 127.0.0.1:7335"] + fields + ["", ""]).joined(separator: "\r\n").utf8)
        guard case .complete(let head, _) = bytes.withUnsafeBytes({ RequestParser.parse($0, limits: RequestLimits()) }) else {
            Issue.record("no request")
            return
        }
        #expect(CrossOrigin.isForeign(head) == isForeign)
    }
}
