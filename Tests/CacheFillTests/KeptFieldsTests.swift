import HTTPModel
import Testing
import Upstream

@testable import CacheFill

/// What of an origin's head goes to players.
@Suite struct KeptFieldsTests {
    private func head(_ status: Int, _ ranges: [String]) -> UpstreamHead {
        var fields = HeaderFields()
        for range in ranges { fields.append("Content-Range", range) }
        return UpstreamHead(
            status: status, fields: fields, finalURL: "https://example.com/a", contentLength: nil, receivedAt: 0)
    }

    /// RFC 9110 §14.4: it tells of parts, and of ranges that cannot be satisfied. Two that differ would be taken for
    /// either.
    @Test(arguments: [
        (200, ["bytes 0-9/10"], []), (206, ["bytes 0-9/10"], []), (345, ["bytes */11", "bytes */12"], []),
        (404, ["bytes */11"], []),
        (416, ["bytes */11"], ["bytes */11"]), (416, ["bytes  */11", "bytes  */11"], ["bytes */11"]),
        (416, ["bytes */11", "bytes */12"], []),
        (416, ["bytes */11Length: 5"], []), (416, ["bytes 0-9/10"], []),
    ])
    func contentRangeIsKeptWhereItMeansSomething(status: Int, came: [String], kept: [String]) {
        #expect(head(status, came).keptFields(receivedAt: 0).all("Content-Range") == kept)
    }

    @Test func twoContentRangesThatDifferAreNone() {
        #expect(head(206, ["bytes 0-9/10", "bytes 0-9/11"]).contentRange == nil)
        #expect(head(206, ["bytes 0-9/10", "bytes 0-9/10"]).contentRange == ContentRange(range: 0..<10, total: 10))
    }
}
