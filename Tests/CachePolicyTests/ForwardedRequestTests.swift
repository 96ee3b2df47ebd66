import CachePolicy
import HTTPModel
import Testing

/// Who sent a request that trusted proxies have forwarded.
@Suite struct ForwardedRequestTests {
    private static func request(_ fields: [(String, String)]) throws -> RequestHead {
        let lines = fields.map { "\($0): \($1)\r\n" }.joined()
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n".utf8)
        guard case .complete(let head, _) = bytes.withUnsafeBytes({ RequestParser.parse($0) }) else {
            throw RequestFault(status: 0, reason: "no request")
        }
        return head
    }

    private static func forwarded(_ fields: (String, String)...) throws -> ForwardedRequest {
        try ForwardedRequest(request(fields), trusted: TrustedAddresses(["10.0.0.0/8", "127.0.0.1", "fd00::/8"]))
    }

    @Test(
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("192.0.2.1:1234", "192.0.2.1:1234"), ("2001:db8::1", "[2001:db8::1]"),
            ("[2001:db8::1]:99", "[2001:db8::1]:99"), ("::ffff:192.0.2.1", "192.0.2.1"),
            // The last that is not trusted counts: those before it are what the client says.
            ("203.0.113.9, 192.0.2.1", "192.0.2.1"), ("203.0.113.9, 192.0.2.1, 10.1.2.3", "192.0.2.1"),
            ("127.0.0.1, 192.0.2.1, 10.0.0.1,10.0.0.2 ,, fd00::1", "192.0.2.1"),
            // A client within the trusted networks.
            ("10.0.0.7, 10.0.0.1", "10.0.0.7"), ("10.0.0.7", "10.0.0.7"),
            // Somebody withholds it.
            ("unknown", nil), ("192.0.2.1, unknown", nil), ("192.0.2.1, nonsense, 10.0.0.1", nil), ("", nil),
        ] as [(String, String?)])
    func clientIsTheLastAddressThatIsNotTrusted(list: String, client: String?) throws {
        #expect(try Self.forwarded(("X-Forwarded-For", list)).client?.description == client)
        let elements = list.split(separator: ",").map { $0.trimmingPrefix(" ") }.map { "for=\"\($0)\"" }
        if !list.contains(" ,,") {
            let field = elements.joined(separator: ", ")
            #expect(try Self.forwarded(("Forwarded", field)).client?.description == client, "\(field)")
        }
    }

    @Test func schemeHostAndPortAreThoseThatTheClientUsed() throws {
        let one = try Self.forwarded(("Forwarded", "for=192.0.2.1;proto=HTTPS;host=\"tv.example:8443\""))
        #expect(one.scheme == .https && one.host == "tv.example:8443" && one.port == nil)
        let other = try Self.forwarded(
            ("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "tv.example"),
            ("X-Forwarded-Port", "8443"))
        #expect(other.scheme == .https && other.host == "tv.example" && other.port == 8443)
        let nothing = try Self.forwarded(("X-Forwarded-Proto", "gopher"), ("X-Forwarded-Port", "65536"))
        #expect(nothing == ForwardedRequest())
    }

    /// The proxy that the client is connected to says how; what is before it is the client's invention.
    @Test func eachStatementIsOfTheProxyThatSawTheClient() throws {
        let chain = try Self.forwarded(
            ("Forwarded", "for=9.9.9.9;proto=http;host=forged.example"),
            ("Forwarded", "for=192.0.2.1;proto=https;host=tv.example, for=10.0.0.1;proto=http;host=inner"))
        #expect(chain.client?.description == "192.0.2.1" && chain.scheme == .https && chain.host == "tv.example")
        let lists = try Self.forwarded(
            ("X-Forwarded-For", "9.9.9.9, 192.0.2.1, 10.0.0.1"), ("X-Forwarded-Proto", "http, https, http"),
            ("X-Forwarded-Host", "tv.example"))
        #expect(lists.scheme == .https && lists.host == "tv.example")
    }

    @Test func statementsThatContradictEachOtherAreRefused() throws {
        #expect(throws: RequestFault.self) {
            try Self.forwarded(("Forwarded", "for=127.0.0.1"), ("X-Forwarded-For", "192.0.2.1"))
        }
        let same = try Self.forwarded(("Forwarded", "for=\"192.0.2.1:5\""), ("X-Forwarded-For", "192.0.2.1"))
        #expect(same.client?.description == "192.0.2.1:5")
        #expect(throws: RequestFault.self) {
            try Self.forwarded(("Forwarded", "for=\""), ("Forwarded", "for=192.0.2.1"))
        }
    }

    /// The proxy writes one kind, and passes on what a client wrote of the other.
    @Test(arguments: [
        // The proxy writes X-Forwarded-For.
        ("proto=http;host=other.example", ["For": "192.0.2.1"]), ("for=unknown;proto=https", ["For": "192.0.2.1"]),
        // It writes Forwarded, and withholds the client.
        ("for=_hidden", ["For": "1.2.3.4"]), ("for=unknown", ["For": "unknown"]),
        // It writes a part.
        ("for=192.0.2.1", ["Host": "other.example"]), ("host=other.example", ["Proto": "https"]),
    ])
    func forgedFieldOfTheOtherKindIsRefused(standard: String, usual: [String: String]) throws {
        let fields = [("Forwarded", standard)] + usual.map { ("X-Forwarded-\($0)", $1) }
        #expect(throws: RequestFault.self) {
            try ForwardedRequest(Self.request(fields), trusted: TrustedAddresses(["10.0.0.0/8"]))
        }
    }

    /// A client knows its own address, too.
    @Test func whatOneOfTwoKindsStatesAloneDoesNotCount() throws {
        let names = [("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.1;proto=https;host=other.example")]
        let alone = try Self.forwarded(names[0], names[1], ("X-Forwarded-Port", "9"))
        #expect(alone.client?.description == "192.0.2.1")
        #expect(alone.scheme == nil && alone.host == nil && alone.port == nil)
        let different = try Self.forwarded(names[0], names[1], ("X-Forwarded-Proto", "http"))
        #expect(different.scheme == nil)
        let alike = try Self.forwarded(
            names[0], names[1], ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "other.example"))
        #expect(alike.scheme == .https && alike.host == "other.example")
    }

    @Test func trustedAddressesAreAddressesAndNetworks() throws {
        let trusted = try TrustedAddresses(["10.0.0.0/8", "2001:db8::1", "::ffff:192.0.2.0/120"])
        for address in ["10.255.0.1", "2001:db8::1", "192.0.2.7", "::ffff:10.0.0.1"] {
            #expect(trusted.contains(try #require(IPAddress(address))), "\(address)")
        }
        for address in ["11.0.0.1", "2001:db8::2", "192.0.3.7", "::1"] {
            #expect(!trusted.contains(try #require(IPAddress(address))), "\(address)")
        }
        for entry in ["balancer.example", "", "10.0.0.0/33", "10.0.0", "10.0.0.1:80"] {
            #expect(throws: RuleError.self) { try TrustedAddresses([entry]) }
        }
    }

    @Test func ratesAreReadAndWritten() throws {
        for text in ["1/s", "600/min", "1000000/h"] { #expect(try RequestRate(text).description == text) }
        #expect(try RequestRate("600/min").interval == 100_000_000)
        for text in ["", "5", "0/s", "-1/s", "1000001/s", "5/", "5/day", "1.5/s", "5/s/s", "99999999999999999999/s"] {
            #expect(throws: RuleError.self, "\(text)") { try RequestRate(text) }
        }
    }

    @Test func ipv6ClientsCountByTheirNetwork() throws {
        let address = { (text: String) throws in try #require(IPAddress(text)).ofClient }
        #expect(try address("2001:db8:1:2:3::4") == address("2001:db8:1:2:ffff::1"))
        #expect(try address("2001:db8:1:2::") != address("2001:db8:1:3::"))
        #expect(try address("192.0.2.1") != address("192.0.2.2"))
    }
}
