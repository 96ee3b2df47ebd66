import CachePolicy
import HTTPModel
import Testing

@Suite struct KeptFieldsTests {
    private static func line(_ name: String, bytes: Int) -> HeaderFields.Line {
        .init(name: name, value: String(repeating: "x", count: bytes))
    }

    @Test func whatIsUsualStays() {
        let fields = HeaderFields(
            (0..<40).map { Self.line("X-Field-\($0)", bytes: 100) } + [.init(name: "ETag", value: "\"1\"")])
        #expect(fields.canBeKept && fields.worthKeeping == fields)
    }

    @Test func essentialFieldsStayHoweverManyOthersThereAre() {
        var fields = HeaderFields((0..<250).map { Self.line("X-\($0)", bytes: 100) })
        fields.append("Content-type", "video/mp4")
        fields.append("CACHE-CONTROL", "max-age=5")
        let kept = fields.worthKeeping
        #expect(kept["Content-Type"] == "video/mp4" && kept["Cache-Control"] == "max-age=5")
        #expect(kept["X-0"] != nil && kept["X-249"] == nil)
        #expect(kept.lines.map { $0.name.utf8.count + $0.value.utf8.count }.reduce(0, +) < HeaderFields.keptBytes)
        #expect(kept.worthKeeping == kept)
    }

    /// Tiny ones cost more than their text.
    @Test func linesThemselvesCount() {
        let fields = HeaderFields((0..<250).map { _ in HeaderFields.Line(name: "a", value: "b") })
        #expect(fields.worthKeeping.lines.count < 130)
    }

    @Test func oneThatIsTooLongMakesRoomForTheNext() {
        let fields = HeaderFields([Self.line("X-Long", bytes: 9000), Self.line("X-Short", bytes: 10)])
        #expect(fields.canBeKept && fields.worthKeeping.lines.map(\.name) == ["X-Short"])
    }

    @Test func responseWhoseEssentialFieldsAreTooLongIsNotStored() {
        let fields = HeaderFields([Self.line("Content-Security-Policy", bytes: 9000)])
        #expect(!fields.canBeKept && fields.worthKeeping == fields)
        let request = RequestDirectives(cacheControl: nil, pragma: nil)
        #expect(
            Storing.decide(status: 200, fields: fields, total: 5, .init(request), expectsMedia: false, ResolvedRule())
                == .pass(.fields))
    }

    @Test func responseThatVariesByMoreThanAnybodyChoosesByIsNotStored() {
        let request = RequestDirectives(cacheControl: nil, pragma: nil)
        for (count, decision) in [(64, Storing.store), (65, .pass(.varyAny))] {
            let fields = HeaderFields([.init(name: "Vary", value: (0..<count).map { "x-\($0)" }.joined(separator: ","))]
            )
            #expect(
                Storing.decide(
                    status: 200, fields: fields, total: 5, .init(request), expectsMedia: false, ResolvedRule())
                    == decision)
        }
    }
}
