import Foundation
import Testing

/// `docs/dev/security.md` names tests that are there.
@Suite struct SecurityDocumentTests {
    @Test func eachTestThatItNamesIsThere() throws {
        let tests = try HTTPDocumentTests.tests()
        let text = try String(
            contentsOf: HTTPDocumentTests.root.appendingPathComponent("docs/dev/security.md"), encoding: .utf8)
        let named = text.split(separator: "\n").filter { $0.hasPrefix("|") }.flatMap {
            $0.matches(of: /`([A-Z][A-Za-z0-9]+)\.([a-z0-9][A-Za-z0-9]+)`/)
        }
        #expect(named.count > 20)
        for match in named { #expect(tests[String(match.1)]?.contains(String(match.2)) == true, "\(match.0)") }
    }
}
