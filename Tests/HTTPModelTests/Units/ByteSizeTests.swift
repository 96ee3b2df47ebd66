import HTTPModel
import TestSupport
import Testing

@Suite struct ByteSizeTests {
    @Test(
        arguments: [
            ("0", 0), ("1", 1), ("500000", 500_000), ("500_000", 500_000), ("12 345", 12_345),
            ("7b", 7), ("7 B", 7),
            ("1k", 1000), ("1kB", 1000), ("1KB", 1000), ("1KiB", 1024), ("1kib", 1024),
            ("3m", 3_000_000), ("3MB", 3_000_000), ("3MiB", 3 << 20),
            ("20GB", 20_000_000_000), ("20 g", 20_000_000_000), ("4GiB", 4 << 30),
            ("2T", 2_000_000_000_000), ("2tb", 2_000_000_000_000), ("2TiB", 2 << 40),
            ("1.5 GB", 1_500_000_000), ("0.5KiB", 512), (".5kB", 500), ("1.0005kB", 1001), ("0.1", 0),
            ("9000000TB", 9_000_000_000_000_000_000),
        ] as [(String, Int64)])
    func sizeIsReadAsPeopleWriteIt(text: String, bytes: Int64) {
        #expect(ByteSize(text)?.bytes == bytes)
    }

    @Test(arguments: [
        "", " ", "B", "GB", "-1", "-1GB", "+1", "1.2.3", "1,5GB", "1e3", "0x10", "1 PB", "1EiB", "1GiBs", "1mbit",
        "ten", "inf", "nan", "٣", "½", "1G B!",
        "10000000TB", "99999999999999999999", ".",
    ])
    func whatIsNoSizeIsRefused(text: String) {
        #expect(ByteSize(text) == nil)
    }

    @Test(
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (2, "2 bytes"), (999, "999 bytes"),
            (1000, "1.00 kB"), (1004, "1.00 kB"), (1005, "1.00 kB"), (1006, "1.01 kB"), (1024, "1.02 kB"),
            (1090, "1.09 kB"),
            (9994, "9.99 kB"), (9996, "10.0 kB"), (10_049, "10.0 kB"), (10_051, "10.1 kB"), (99_949, "99.9 kB"),
            (99_951, "100 kB"),
            (123_456, "123 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"), (1_230_000_000, "1.23 GB"),
            (20_000_000_000, "20.0 GB"),
            (4 << 20, "4.19 MB"), (1_500_000_000_000, "1.50 TB"), (2_000_000_000_000_000, "2.00 PB"), (.max, "9.22 EB"),
        ] as [(Int64, String)])
    func sizePrintsThreeDigitsAndADecimalUnit(bytes: Int64, text: String) {
        #expect(ByteSize(bytes: bytes).description == text)
    }

    /// What is printed reads back to within half of the last digit.
    @Test func printedSizeReadsBackToThreeDigits() throws {
        var random = SplitMix64.forTest("printedSizeReadsBackToThreeDigits")
        for _ in 0..<2000 {
            // As far as there are names for both: terabytes.
            let bytes = Int64.random(in: 1000..<(1000 << Int64.random(in: 0...39, using: &random)) + 1, using: &random)
            let text = ByteSize(bytes: bytes).description
            let read = try #require(ByteSize(text), "\(text)").bytes
            #expect(abs(Double(read - bytes)) <= Double(bytes) * 0.00503 + 1, "\(bytes) printed as \(text)")
            #expect(ByteSize(bytes: read).description == text)
        }
    }

    @Test func wholeNumbersReadBackExactly() {
        var random = SplitMix64.forTest("wholeNumbersReadBackExactly")
        for _ in 0..<2000 {
            let bytes = Int64.random(in: 0..<1 << 53, using: &random)
            #expect(ByteSize(String(bytes))?.bytes == bytes)
        }
    }
}
