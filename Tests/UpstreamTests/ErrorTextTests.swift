import Testing
import Upstream

@Suite struct ErrorTextTests {
    @Test func whatAnOriginSendsDoesNotSteerATerminal() {
        let error = UpstreamError.badRedirect(location: "ftp://a/\u{1B}[2J\u{9B}1m\u{7}\r\nb")
        #expect(error.description == "redirected to ftp://a/?[2J?1m???b, which cannot be fetched")
        #expect(UpstreamError.protocolViolation(detail: String(repeating: "x", count: 30_000)).description.count == 500)
    }
}
