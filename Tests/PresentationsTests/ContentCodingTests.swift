import HTTPModel
import Testing

@testable import Presentations

/// Which content codings are removed; what they contain is tested through the proxy.
@Suite struct ContentCodingTests {
    /// Each layer costs a pass over the text, and a header may name hundreds.
    @Test(
        arguments: [
            ("gzip, gzip, gzip", .unknown("gzip, gzip, gzip")), ("gzip, deflate", .broken), ("br", .unknown("br")),
            ("identity, , gzip", .broken),
        ] as [(String, ContentCoding.Problem)])
    func fewLayersAreDecoded(codings: String, problem: ContentCoding.Problem) {
        var fields = HeaderFields()
        fields.append("Content-Encoding", codings)
        #expect(throws: problem) { try ContentCoding.decoded([1, 2, 3], fields) }
    }

    @Test func layersOfSeveralFieldsCountTogether() {
        var fields = HeaderFields()
        for _ in 0..<3 { fields.append("Content-Encoding", "gzip") }
        #expect(throws: ContentCoding.Problem.unknown("gzip, gzip, gzip")) {
            try ContentCoding.decoded([1, 2, 3], fields)
        }
    }
}
