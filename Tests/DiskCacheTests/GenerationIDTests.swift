import Foundation
import GRDB
import Testing

@testable import DiskCache

@Suite struct GenerationIDTests {
    /// Neighbours have neighbouring rows and one directory; and all directories get some.
    @Test func theyComeInRuns() {
        var ids = GenerationID.Series(session: 0x1_2345)
        let made = (0..<64 * 400).map { _ in ids.make() }
        #expect(Set(made).count == made.count)
        for id in made {
            #expect(id.isMade(in: 0x2345) && !id.isMade(in: 0x2346))
            #expect(GenerationID(fileName: id.description) == id)
        }
        for run in stride(from: 0, to: made.count, by: 64) {
            #expect(made[run + 63].value - made[run].value == 63 << 16)
            #expect(Set(made[run..<run + 64].map { $0.description.prefix(2) }).count <= 2)
        }
        #expect(Set(made.map { $0.description.prefix(2) }).count > 64)
    }

    @Test(arguments: [1, 77, UInt64(Int64.max), 1 << 63, .max]) func rowsHaveTheSameBits(value: UInt64) {
        let id = GenerationID(value: value)
        #expect(GenerationID.fromDatabaseValue(id.databaseValue) == id)
        #expect(id.databaseValue == Int64(bitPattern: value).databaseValue)
    }

    @Test func anotherTypeIsNone() {
        #expect(GenerationID.fromDatabaseValue("a".databaseValue) == nil)
        #expect(GenerationID.fromDatabaseValue(.null) == nil)
    }
}

@Suite struct HeadRowTests {
    @Test func pairsAreJSON() throws {
        let pairs: [(String, String?)] = [
            ("A", "b"), ("", ""), ("Quote\"", "back\\slash"), ("a", nil), ("\u{1}\t\n", "\u{1F}\u{7F}/"),
            ("é", "\u{1F3AC} \u{2028}"), ("e\u{301}", "\"\u{301}"),
        ]
        for count in 0...pairs.count {
            let written = IndexStatement.pairs(pairs[..<count])
            let read = try JSONDecoder().decode([[String?]].self, from: Data(written))
            #expect(
                read.map { $0.map { $0.map { Array($0.utf8) } } }
                    == pairs[..<count].map { [Array($0.utf8), $1.map { Array($0.utf8) }] })
        }
    }

    @Test func pairsWithoutControlCharactersAreReadBack() {
        let pairs: [(String, String?)] = [
            ("A", "b"), ("", ""), ("a", nil), ("é", "\u{1F3AC} \u{7F}/"), ("ETag", "\"a\\b\""), ("\"", "\\\\"),
            ("\"\"x", "\\x\""),
        ]
        for count in 0...pairs.count {
            let read = IndexStatement.plainPairs(String(decoding: IndexStatement.pairs(pairs[..<count]), as: UTF8.self))
            #expect(read?.map(\.0) == pairs[..<count].map(\.0) && read?.map(\.1) == pairs[..<count].map(\.1))
        }
    }

    /// These are for a decoder of all of JSON.
    @Test(arguments: [
        "", "[", "[]]", "[[]]", "[[\"a\"]]", "[[\"a\",\"b\"]", "[[\"a\",\"b\",\"c\"]]", "[[\"a\",nul]]", "[[\"a\",7]]",
        "{}", "null",
        "[[\"a\",\"b\"] ]", "[[\"a\",\"\\\"]]", "[[\"a\",\"\\n\"]]", "[[\"a\",\"\\", "[[\"a\",\"\\u0041\"]]",
        "[[\"a\",\"b\"],]", "[,[\"a\",\"b\"]]",
        "[[null,\"b\"]]",
        "[[\"a\",\"b\"][\"c\",\"d\"]]", "[[\"a\",\"b]]",
    ]) func otherTextsAreNotTakenForPairs(text: String) {
        #expect(IndexStatement.plainPairs(text) == nil)
    }
}
