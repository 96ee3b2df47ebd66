import Foundation
import Testing

/// `docs/HTTP.md` names a test for each feature: it is there.
@Suite struct HTTPDocumentTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The functions of each file of tests, by what stands before `Tests.swift`, and of scenarios by their number.
    private static func functions() throws -> [String: Set<String>] {
        var functions: [String: Set<String>] = [:]
        let paths = FileManager.default.enumerator(atPath: root.appendingPathComponent("Tests").path)?.compactMap { $0 as? String } ?? []
        for path in paths where path.hasSuffix("Tests.swift") {
            let text = try String(contentsOf: root.appendingPathComponent("Tests/" + path), encoding: .utf8)
            let file = String((path as NSString).lastPathComponent.dropLast("Tests.swift".count))
            let suite = file.firstMatch(of: /^S[0-9][0-9](?=_)/).map { String($0.0) } ?? file
            functions[suite, default: []].formUnion(text.matches(of: /func ([A-Za-z0-9]+)/).map { String($0.1) })
        }
        return functions
    }

    @Test func eachTestThatTheTableNamesIsThere() throws {
        let text = try String(contentsOf: Self.root.appendingPathComponent("docs/HTTP.md"), encoding: .utf8)
        let tables = text.components(separatedBy: "## The control interface")[0]
        let functions = try Self.functions()
        let named = tables.matches(of: /`([A-Z][A-Za-z0-9]+)\.([a-z0-9][A-Za-z0-9]+)`/).map { (String($0.1), String($0.2)) }
        #expect(named.count > 60)
        for (suite, name) in named { #expect(functions[suite]?.contains(name) == true, "\(suite).\(name)") }
    }
}
