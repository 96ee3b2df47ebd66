import HTTPModel
import TestSupport
import Testing

@Suite struct ContentRangeTests {
    @Test(arguments: [
        ("bytes 0-9/100", ContentRange(range: 0..<10, total: 100)),
        ("bytes 0-9/*", ContentRange(range: 0..<10, total: nil)),
        ("bytes */100", ContentRange(range: nil, total: 100)),
        ("Bytes 99-99/100", ContentRange(range: 99..<100, total: 100)),
        ("bytes */0", ContentRange(range: nil, total: 0)),
        (
            "bytes 0-1152921504606846975/1152921504606846976",
            ContentRange(range: 0..<1_152_921_504_606_846_976, total: 1_152_921_504_606_846_976)
        ),
        (
            "bytes 4294967295-4294967296/4294967297",
            ContentRange(range: 4_294_967_295..<4_294_967_297, total: 4_294_967_297)
        ),
    ])
    func fieldIsRead(field: String, range: ContentRange) {
        #expect(ContentRange(parsing: field) == range)
    }

    @Test(arguments: [
        "", "bytes", "bytes ", "bytes */*", "bytes 0-9", "bytes 9-0/100", "bytes 0-100/100", "bytes 0-9/5",
        "items 0-9/100",
        "bytes=0-9/100",
        "bytes 0-/100", "bytes -9/100", "bytes 0-9/1x", "bytes a-b/c", "bytes 0-9/100/5", "bytes 0-1-2/9", "bytes 0-9/",
        "bytes +0-9/100",
        "bytes 0-9223372036854775807/*", "bytes 0-9/9223372036854775808",
        "bytes 9223372036854775806-9223372036854775806/*",
        "bytes 0-1152921504606846977/*", "bytes 0-9/1152921504606846977", "bytes 0 - 9/100", "0-9/100", "bytes */",
        "bytes **/5",
    ])
    func badFieldIsRefused(field: String) {
        #expect(ContentRange(parsing: field) == nil)
    }

    @Test func writtenFieldIsReadBack() {
        var random = SplitMix64.forTest("contentRange")
        for _ in 0..<2000 {
            let first = Int64.random(in: 0...(1 << 40), using: &random)
            let end = first + Int64.random(in: 1...(1 << 33), using: &random)
            let total = end + Int64.random(in: 0...5, using: &random)
            for (range, total) in [(first..<end, total), (first..<end, nil), (nil, total)] as [(Range<Int64>?, Int64?)]
            {
                let stated = ContentRange(range: range, total: total)
                #expect(ContentRange(parsing: stated.fieldValue) == stated)
            }
        }
    }
}
