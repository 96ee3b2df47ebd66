import CachePolicy
import Testing

@testable import Playlists

@Suite struct HLSVariableTests {
    private static func references(
        _ text: String, at base: String = "https://h/v/x.m3u8", importing variables: [String: String]? = nil
    ) throws -> [String] {
        try HLSPlaylist("#EXTM3U\n" + text, at: base, importing: variables).addresses.map(\.reference)
    }

    @Test func variablesAreReplacedBeforeAnAddressIsResolved() throws {
        let text = """
            #EXT-X-DEFINE:NAME="host",VALUE="https://a.example"
            #EXT-X-DEFINE:NAME="dir",VALUE="{$host}/x"
            #EXT-X-DEFINE:IMPORT="token"
            #EXT-X-DEFINE:QUERYPARAM="session"
            #EXT-X-MAP:URI="{$dir}/init.mp4?{$token}"
            {$dir}/{$session}/a.ts
            {not}/{$}/{$a b}/{$un
            """
        #expect(
            try Self.references(text, at: "https://h/v/x.m3u8?a=b&session=s%201&session=2", importing: ["token": "t=1"])
                == [
                    "https://a.example/x/init.mp4?t=1", "https://a.example/x/s%201/a.ts", "{not}/{$}/{$a%20b}/{$un",
                ])
    }

    @Test(
        arguments: [
            ("{$a}", .undefinedVariable, 2),
            ("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{$b}\"\n#EXT-X-DEFINE:NAME=\"b\",VALUE=\"{$a}\"", .undefinedVariable, 2),
            ("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{$a}\"", .undefinedVariable, 2),
            ("#EXT-X-DEFINE:IMPORT=\"a\"", .missingImport, 2),
            ("#EXT-X-DEFINE:QUERYPARAM=\"a\"", .undefinedVariable, 2),
            ("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"", .malformed, 3),
            ("#EXT-X-DEFINE:NAME=\"a b\",VALUE=\"1\"", .malformed, 2), ("#EXT-X-DEFINE:NAME=\"a\"", .malformed, 2),
        ] as [(String, PlaylistError.Kind, Int)])
    func whatIsNotDefinedSaysSo(text: String, kind: PlaylistError.Kind, line: Int) {
        let error = failure { _ = try Self.references(text) }
        #expect(error?.kind == kind && error?.line == line)
    }

    @Test(arguments: ["a=x%22y", "a=x%0Ay", "a=%00"]) func queriesCannotWriteIntoThePlaylist(query: String) {
        #expect(
            failure { _ = try Self.references("#EXT-X-DEFINE:QUERYPARAM=\"a\"", at: "https://h/x?" + query) }?.kind
                == .malformed)
    }

    // Behind a redirect the client's URL does not have the parameter; where it has, nothing changes.
    @Test(arguments: [
        ("https://h/x?a=1", nil), ("https://other/", "NAME=\"a\",VALUE=\"1\""),
        ("https://h/x?a=2", "NAME=\"a\",VALUE=\"1\""),
    ])
    func parametersOfTheURLThatAnsweredAreWrittenDown(asked: String, written: String?) throws {
        let text = "#EXTM3U\n#EXT-X-DEFINE:QUERYPARAM=\"a\"\n"
        let edits = try HLSPlaylist(text, at: "https://h/x?a=1").edits(
            for: .local, at: ProxyForm.local(OriginURL(asked)))
        #expect(
            edits.applied(to: bytes(text)).text == "#EXTM3U\n#EXT-X-DEFINE:" + (written ?? "QUERYPARAM=\"a\"") + "\n")
    }

    // A reference that is right stays with its variables; of one that is not, the value is written.
    @Test func variablesStayWhereTheReferenceStays() throws {
        let text = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"d\",VALUE=\"x/y\"\n{$d}/a.ts\n/{$d}/b.ts\n"
        let playlist = try HLSPlaylist(text)
        #expect(
            try playlist.edits(for: .local, at: ProxyForm.local(playlist.base)).applied(to: bytes(text)).text
                == text.replacing("/{$d}/b", with: "http://player.lan:7335/https/cdn.example/x/y/b"))
    }

    @Test func variablesOfVariablesAreBounded() {
        let doubling = (1...40).map { "#EXT-X-DEFINE:NAME=\"v\($0)\",VALUE=\"{$v\($0 - 1)}{$v\($0 - 1)}\"\n" }.joined()
        let error = failure { _ = try Self.references("#EXT-X-DEFINE:NAME=\"v0\",VALUE=\"0123456789\"\n" + doubling) }
        #expect(error?.kind == .tooLarge)
        let long =
            "#EXT-X-DEFINE:NAME=\"v\",VALUE=\"" + String(repeating: "x", count: 60_000) + "\"\n"
            + String(repeating: "{$v}\n", count: 600)
        #expect(failure { _ = try Self.references(long) }?.kind == .tooLarge)
    }

    @Test func variablesAreBoundedInNumber() {
        let many = (0...PlaylistLimits.variables).map { "#EXT-X-DEFINE:NAME=\"v\($0)\",VALUE=\"\"\n" }.joined()
        #expect(failure { _ = try Self.references(many) }?.kind == .tooLarge)
    }
}
