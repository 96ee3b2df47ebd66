import CachePolicy
import Foundation
import Testing

/// What stands for the secrets of URLs where these are shown.
@Suite struct URLMaskTests {
    @Test(arguments: [
        // Parameters
        ("https://h/f.mp4?token=abc", "https://h/f.mp4?token=***"),
        ("https://h/f.mp4?a=1&token=abc&b=2", "https://h/f.mp4?a=1&token=***&b=2"),
        ("https://h/f?TOKEN=abc#t", "https://h/f?TOKEN=***#t"), ("https://h/f?t%6fken=abc", "https://h/f?t%6fken=***"),
        (
            "https://h/f?X-Amz-Credential=A%2Fb&X-Amz-Date=1&X-Amz-Signature=9f",
            "https://h/f?X-Amz-Credential=***&X-Amz-Date=1&X-Amz-Signature=***"
        ),
        ("https://h/f?Policy=a_&Signature=b~&Key-Pair-Id=K", "https://h/f?Policy=***&Signature=***&Key-Pair-Id=K"),
        ("https://h/f?sig=a/b+c==&e=1", "https://h/f?sig=***&e=1"),
        ("https://h/f?token=a;b&c=1", "https://h/f?token=***&c=1"),
        ("https://h/f?token=", "https://h/f?token="), ("https://h/f?token", "https://h/f?token"),
        ("https://h/f#access_token=abc", "https://h/f#access_token=***"),
        ("https://h/f?x=1&amp;token=abc", "https://h/f?x=1&amp;token=***"),
        // No secrets
        ("https://h/f?id=7&t=10", "https://h/f?id=7&t=10"), ("https://h/f?author=me", "https://h/f?author=me"),
        ("token=abc", "token=abc"), ("", ""),
        ("100 % of a = b", "100 % of a = b"), ("me@example.org", "me@example.org"),
        ("https://h/@me/f", "https://h/@me/f"),
        // In paths
        ("https://h/f.mp4;jsessionid=1/g?x=2", "https://h/f.mp4;jsessionid=***/g?x=2"),
        ("https://h/hdntl=exp=1~hmac=2/f.mp4", "https://h/hdntl=***/f.mp4"),
        ("/https/h/f?token=abc", "/https/h/f?token=***"),
        // Userinfo
        ("https://user:pass@h/f", "https://***@h/f"), ("http://a@b@h/f", "http://***@h/f"),
        ("/https/user:pass@h/f", "/https/***@h/f"),
        ("/http:/user@h/f", "/http:/***@h/f"), ("https://user%40x@h", "https://***@h"),
        ("https://***@h/f?token=***", "https://***@h/f?token=***"),
        // A URL in another one
        (
            "/api/v1/resources?url=https%3A%2F%2Fh%2Ff%3Ftoken%3Dabc%26x%3D1&limit=2",
            "/api/v1/resources?url=https%3A%2F%2Fh%2Ff%3Ftoken%3D***%26x%3D1&limit=2"
        ),
        ("https://h/go?to=https%3a%2f%2fu%3ap%40g%2f", "https://h/go?to=https%3a%2f%2f***%40g%2f"),
        ("https://h/f?token=a%26b%3Dc&d=1", "https://h/f?token=***&d=1"),
        ("/a?u=%252Ff%253Fsig%253Dab%2526x%253D1%26y=2", "/a?u=%252Ff%253Fsig%253D***%2526x%253D1%26y=2"),
        // In sentences
        ("cannot fetch https://h/f?token=abc: no such host", "cannot fetch https://h/f?token=***: no such host"),
        ("(https://h/f?token=abc), then /g?key=2.", "(https://h/f?token=***), then /g?key=***."),
        ("https://h/f?token=abc\nfrom=x/y?z=1", "https://h/f?token=***\nfrom=x/y?z=1"),
        ("https://h/f?x=%&token=%zz", "https://h/f?x=%&token=***"),
        // In JSON
        (#"{"url":"https://u:p@h/f?token=a\"b/c&x=1","n":2}"#, #"{"url":"https://***@h/f?token=***&x=1","n":2}"#),
        (#"{"a":"/f?token=x\\","key":"b=c"}"#, #"{"a":"/f?token=***","key":"b=c"}"#),
    ])
    func secretsAreMasked(text: String, masked: String) {
        #expect(URLMask.standard.masked(text) == masked)
        #expect(URLMask.standard.masked(masked) == masked)
    }

    @Test func furtherParametersAreSecretWhereTheyAreNamed() throws {
        let mask = try URLMask(adding: ["Viewer", "x-mine-*"])
        #expect(
            mask.masked("https://h/f?viewer=1&X-Mine-a=2&mine=3&token=4")
                == "https://h/f?viewer=***&X-Mine-a=***&mine=3&token=***")
        for name in ["", "a b", "a=b", "a&b"] { #expect(throws: RuleError.self) { try URLMask(adding: [name]) } }
    }

    /// Whatever the bytes are: nothing traps, and JSON stays JSON.
    @Test func anyTextCanBeMasked() throws {
        let pieces = [
            "/", "?", "&", "token=", "%", "%3", "%25", "%3D", "sig%3d", "@", "://", "http", "\"", "\\", " ", "ü", "a",
            "=", ";", "#", "%2526", "\n",
        ]
        var state: UInt64 = 12
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        for _ in 0..<3000 {
            let text = (0..<random(24)).map { _ in pieces[random(pieces.count)] }.joined()
            let line = try JSONSerialization.data(withJSONObject: ["a": text, "b": "c"])
            let read =
                try JSONSerialization.jsonObject(with: Data(URLMask.standard.masked(Array(line)))) as? [String: String]
            #expect(read?["b"] == "c" && read?.count == 2, "\(text)")
        }
    }

    /// Both pages on security list the names as the code has them.
    @Test(arguments: ["docs/dev/security.md", "docs/guide/security.md"])
    func documentListsTheNames(path: String) throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        for name in URLMask.standardNames { #expect(text.contains("`\(name)`"), "\(path): \(name)") }
    }
}
