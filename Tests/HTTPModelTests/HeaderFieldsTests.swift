import HTTPModel
import Testing

@Suite struct HeaderFieldsTests {
    private let lines = HeaderFields([
        .init(name: "Vary", value: "a"), .init(name: "ETag", value: "\"1\""), .init(name: "vary", value: "b"),
    ])

    @Test func linesAreFoundWithoutRegardToCase() {
        #expect(lines["VARY"] == "a")
        #expect(lines["etag"] == "\"1\"")
        #expect(lines["absent"] == nil)
        #expect(lines.all("vary") == ["a", "b"])
        #expect(lines.combined("Vary") == "a, b")
        #expect(lines.combined("absent") == nil)
    }

    @Test func replacingLeavesOneLineInTheFirstPlace() {
        var changed = lines
        changed.replace("VARY", "c")
        #expect(changed.lines.map(\.value) == ["c", "\"1\""])
        changed.replace("Age", "5")
        #expect(changed.lines.last == .init(name: "Age", value: "5"))
    }

    @Test func fieldsOfOneConnectionAreRemovedWithThoseThatItNames() {
        let names = [
            "Connection", "connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
            "TE", "Trailer",
            "Transfer-Encoding", "Upgrade", "X-Hop", "x-OTHER", "Accept", "Authorization",
        ]
        var fields = HeaderFields(names.map { .init(name: $0, value: "close,\tX-Hop , x-other") })
        fields.removeHopByHop()
        #expect(fields.lines.map(\.name) == ["Accept", "Authorization"])
    }

    @Test func linesThatAreNoFieldsAreRemoved() {
        let malformed = [
            ("", "a"), ("a b", "a"), ("a\r", "a"), ("A", "b\rC: d"), ("A", "b\u{0}"), ("A", "b\u{7F}"), ("A:", "b"),
            ("\u{E9}", "a"),
        ]
        let proper = [("A", ""), ("a-b!#1", "b\tc"), ("A", "\u{E9}")]
        var fields = HeaderFields((malformed + proper).map { .init(name: $0.0, value: $0.1) })
        fields.removeMalformed()
        #expect(fields.lines == proper.map { .init(name: $0.0, value: $0.1) })
    }

    @Test func appendingKeepsWhatIsThereAndRemovingTakesAll() {
        var changed = lines
        changed.append("Vary", "d")
        #expect(changed.all("vary") == ["a", "b", "d"])
        changed.remove("vAry")
        #expect(changed.lines.map(\.name) == ["ETag"])
    }

    /// What takes as many steps as the product of the two takes hours here.
    @Test(.timeLimit(.minutes(5))) func manyNamesInConnectionAreOnePass() {
        var fields = HeaderFields((0..<100_000).map { .init(name: "X-\($0)", value: "") })
        fields.append("Connection", (0..<100_000).map { "y-\($0), x-\($0 * 2)" }.joined(separator: ","))
        fields.removeHopByHop()
        #expect(fields.lines.count == 50_000)
    }
}
