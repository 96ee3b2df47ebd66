import HTTPModel
import TestSupport
import Testing

@Suite struct ByteRangeTests {
    @Test(
        arguments: [
            (nil, .none), ("bytes=0-0", .single(.bounded(first: 0, last: 0))), ("bytes=0-", .single(.from(0))),
            ("bytes=-5", .single(.suffix(5))),
            ("BYTES=1-2", .single(.bounded(first: 1, last: 2))),
            ("bytes=0-1,5-", .multiple([.bounded(first: 0, last: 1), .from(5)])),
            ("bytes=, 0-1 ,\t, -7 ,", .multiple([.bounded(first: 0, last: 1), .suffix(7)])),
            ("bytes=,3-", .single(.from(3))),
            ("items=0-1", .none), ("seconds=a;b", .none), ("bytes=-0", .single(.suffix(0))),
            ("bytes=99999999999999999999-", .single(.from(ByteNumber.greatest))),
            (
                "bytes=4294967296-9223372036854775807",
                .single(.bounded(first: 4_294_967_296, last: ByteNumber.greatest))
            ),
            ("bytes=0-9223372036854775808", .single(.bounded(first: 0, last: ByteNumber.greatest))),
            // Before it is held at the bound, it ends before it begins.
            ("bytes=3000000000000000000-2000000000000000000", .malformed),
            ("", .malformed), ("bytes", .malformed), ("bytes=", .malformed), ("bytes=,", .malformed),
            ("bytes=-", .malformed),
            ("bytes=5-4", .malformed), ("bytes=a-b", .malformed), ("bytes=1-2-3", .malformed),
            ("bytes=--1", .malformed),
            ("bytes=+1-2", .malformed), ("bytes=1 -2", .malformed), ("bytes =1-2", .malformed), ("=1-2", .malformed),
            ("bytes=1-2,x", .malformed),
            ("bytes=1;2", .malformed), ("bytes=5", .malformed), ("bytes: 1-2", .malformed),
        ] as [(String?, RangeRequest)])
    func fieldIsRead(field: String?, request: RangeRequest) {
        #expect(RangeRequest.parse(field) == request)
    }

    @Test(
        arguments: [
            (.bounded(first: 0, last: 0), 10, 0..<1), (.bounded(first: 2, last: 5), 10, 2..<6),
            (.bounded(first: 9, last: 9), 10, 9..<10),
            (.bounded(first: 9, last: 999), 10, 9..<10), (.bounded(first: 10, last: 12), 10, nil),
            (.from(0), 10, 0..<10),
            (.from(9), 10, 9..<10),
            (.from(10), 10, nil), (.suffix(4), 10, 6..<10), (.suffix(10), 10, 0..<10), (.suffix(11), 10, 0..<10),
            (.suffix(0), 10, nil),
            (.from(0), 0, nil), (.suffix(5), 0, nil), (.bounded(first: 0, last: 0), 0, nil),
            (.bounded(first: 5, last: 4), 10, nil),
            (.bounded(first: 0, last: .max), .max, 0..<Int64.max), (.suffix(.max), 5_000_000_000, 0..<5_000_000_000),
            (.bounded(first: 4_294_967_295, last: 4_294_967_296), 5_000_000_000, 4_294_967_295..<4_294_967_297),
            (.bounded(first: -3, last: 4), 10, nil), (.from(-1), 10, nil),
        ] as [(ByteRangeSpec, Int64, Range<Int64>?)])
    func specIsResolved(spec: ByteRangeSpec, length: Int64, range: Range<Int64>?) {
        #expect(spec.resolve(length: length) == range)
    }

    @Test func resolvedRangeHoldsExactlyTheBytesThatAreMeant() {
        var random = SplitMix64.forTest("resolvedRange")
        for _ in 0..<3000 {
            let length = Int64.random(in: 0...12, using: &random)
            let a = Int64.random(in: 0...14, using: &random)
            let b = Int64.random(in: a...16, using: &random)
            for spec in [ByteRangeSpec.bounded(first: a, last: b), .from(a), .suffix(a)] {
                let meant = (0..<length).filter { Self.isMeant($0, by: spec, length) }
                #expect(spec.resolve(length: length).map(Array.init) ?? [] == meant, "\(spec) of \(length)")
            }
        }
    }

    private static func isMeant(_ offset: Int64, by spec: ByteRangeSpec, _ length: Int64) -> Bool {
        switch spec {
        case .bounded(let first, let last): first <= offset && offset <= last
        case .from(let first): first <= offset
        case .suffix(let count): length - offset <= count
        }
    }

    // MARK: - Grammar against a model

    @Test func generatedFieldsAreReadAsByTheModel() {
        var random = SplitMix64.forTest("generatedRanges")
        var counts: [String: Int] = [:]
        for _ in 0..<3000 {
            let field = Self.field(&random)
            let expected = Self.model(field)
            counts[String("\(expected)".prefix(6)), default: 0] += 1
            #expect(RangeRequest.parse(field) == expected, "\(field.debugDescription)")
        }
        #expect(
            counts.count == 4 && counts.values.allSatisfy { $0 > 20 }, "the generator reaches every outcome: \(counts)")
    }

    private static func field(_ random: inout SplitMix64) -> String {
        let unit = ["bytes", "bytes", "Bytes", "items", "by tes", ""].randomElement(using: &random)!
        let elements = (0..<Int.random(in: 1...4, using: &random)).map { _ in element(&random) }
        var text = unit + "=" + elements.joined(separator: [",", ", ", " ,", ",,"].randomElement(using: &random)!)
        if Int.random(in: 0..<4, using: &random) == 0 { text.remove(at: text.indices.randomElement(using: &random)!) }
        return text
    }

    private static func element(_ random: inout SplitMix64) -> String {
        let numbers = [
            "0", "7", "007", "12", "4294967296", "9223372036854775807", "9223372036854775808",
            "99999999999999999999999",
        ]
        let a = numbers.randomElement(using: &random)!
        let b = numbers.randomElement(using: &random)!
        let forms = ["\(a)-\(b)", "\(a)-\(b)", "\(a)-", "-\(b)", "", "-", a, "\(a)--\(b)", "x"]
        return forms.prefix(Bool.random(using: &random) ? 4 : forms.count).randomElement(using: &random)!
    }

    /// The grammar of RFC 9110 §14.1.1 by regular expressions.
    private static func model(_ field: String) -> RangeRequest {
        guard let parts = field.wholeMatch(of: /([!#$%&'*+\-.^_`|~0-9A-Za-z]+)=(.*)/) else { return .malformed }
        guard parts.1.lowercased() == "bytes" else { return .none }
        var specs: [ByteRangeSpec] = []
        for element in parts.2.split(separator: ",") where element.wholeMatch(of: /[ \t]*/) == nil {
            guard let match = element.wholeMatch(of: /[ \t]*(\d*)-(\d*)[ \t]*/) else { return .malformed }
            if match.1.isEmpty && match.2.isEmpty { return .malformed }
            let (first, last) = (Int64(match.1) ?? .max, Int64(match.2) ?? .max)
            let (heldFirst, heldLast) = (min(first, ByteNumber.greatest), min(last, ByteNumber.greatest))
            if match.1.isEmpty {
                specs.append(.suffix(heldLast))
            } else if match.2.isEmpty {
                specs.append(.from(heldFirst))
            } else if first <= last {
                specs.append(.bounded(first: heldFirst, last: heldLast))
            } else {
                return .malformed
            }
        }
        return specs.isEmpty ? .malformed : specs.count == 1 ? .single(specs[0]) : .multiple(specs)
    }
}
