import HTTPModel
import Testing

@Suite struct FieldLinesTests {
    private let lines = FieldLines([
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

    @Test func appendingKeepsWhatIsThereAndRemovingTakesAll() {
        var changed = lines
        changed.append("Vary", "d")
        #expect(changed.all("vary") == ["a", "b", "d"])
        changed.remove("vAry")
        #expect(changed.lines.map(\.name) == ["ETag"])
    }
}
