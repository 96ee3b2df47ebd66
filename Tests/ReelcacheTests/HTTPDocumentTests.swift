import Foundation
import Testing

/// `docs/dev/http.md` names a section and a test for each feature, and the test is there.
@Suite struct HTTPDocumentTests {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Features of the project's own, which are in no specification with numbers.
    private static let withoutSection: Set = [
        "CORS, preflight", "Active content", "Changes by pages of other sites", "PROXY protocol, versions 1 and 2",
    ]
    /// What is deliberately not there, and cannot be shown.
    private static let withoutTest: Set = ["`Warning`"]

    private struct Row {
        let feature: String
        let section: String
        let words: String
        let tests: [(suite: String, name: String)]

        /// - Parameter line: of a table.
        init(_ line: Substring) throws {
            let cells = line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            try #require(cells.count == 4, "\(line)")
            (feature, section, words) = (cells[0], cells[1], cells[2])
            tests = cells[3].matches(of: /`([A-Z][A-Za-z0-9]+)\.([a-z0-9][A-Za-z0-9]+)`/).map {
                (String($0.1), String($0.2))
            }
        }
    }

    /// Of the tables of features, without their heads.
    private static func rows() throws -> [Row] {
        let text = try String(contentsOf: root.appendingPathComponent("docs/dev/http.md"), encoding: .utf8)
        let lines = text.components(separatedBy: "## The control interface")[0].split(separator: "\n")
        return try lines.filter { $0.hasPrefix("|") && !$0.hasPrefix("| feature") && !$0.hasPrefix("|---") }.map(
            Row.init)
    }

    /// The tests of each file, by what stands before `Tests.swift`, and of scenarios by their number. Helpers are none.
    static func tests() throws -> [String: Set<String>] {
        var tests: [String: Set<String>] = [:]
        let paths =
            FileManager.default.enumerator(atPath: root.appendingPathComponent("Tests").path)?.compactMap {
                $0 as? String
            } ?? []
        for path in paths where path.hasSuffix("Tests.swift") {
            let text = try String(contentsOf: root.appendingPathComponent("Tests/" + path), encoding: .utf8)
            let file = String((path as NSString).lastPathComponent.dropLast("Tests.swift".count))
            let suite = file.firstMatch(of: /^S[0-9][0-9](?=_)/).map { String($0.0) } ?? file
            let names = text.components(separatedBy: "@Test").dropFirst().compactMap {
                $0.firstMatch(of: /\bfunc ([A-Za-z0-9]+)/)
            }
            tests[suite, default: []].formUnion(names.map { String($0.1) })
        }
        return tests
    }

    @Test func eachTestThatATableNamesIsThere() throws {
        let tests = try Self.tests()
        // A helper of this file, and a test of it.
        #expect(
            tests["HTTPDocument"]?.contains("rows") == false
                && tests["HTTPDocument"]?.contains("eachFeatureHasASectionAndATest") == true)
        let named = try Self.rows().flatMap(\.tests)
        #expect(named.count > 60)
        for (suite, name) in named { #expect(tests[suite]?.contains(name) == true, "\(suite).\(name)") }
    }

    @Test func eachFeatureHasASectionAndATest() throws {
        let rows = try Self.rows()
        #expect(rows.count > 50)
        for row in rows {
            let isNumbered = row.section.wholeMatch(of: /[0-9]{4}( §[0-9.]+)?([,;] ([0-9]{4} )?§[0-9.]+)*/) != nil
            #expect(isNumbered != Self.withoutSection.contains(row.feature), "\(row.feature): '\(row.section)'")
            #expect(row.tests.isEmpty == Self.withoutTest.contains(row.feature), "\(row.feature)")
            #expect(!row.words.isEmpty, "\(row.feature)")
        }
        for feature in Self.withoutSection.union(Self.withoutTest) {
            #expect(rows.contains { $0.feature == feature }, "\(feature) is gone")
        }
    }
}
