import Foundation
import Testing

/// `docs/dev/concurrency.md` names each lock and each serial queue of the code, and no others.
@Suite struct ConcurrencyDocumentTests {
    private let text: String
    private let sources: [String]

    init() throws {
        let root = HTTPDocumentTests.root
        text = try String(contentsOf: root.appendingPathComponent("docs/dev/concurrency.md"), encoding: .utf8)
        let folder = root.appendingPathComponent("Sources")
        let paths = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        sources = try paths.filter { $0.hasSuffix(".swift") }.map { path in
            try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
        }
    }

    private static func indentation(_ line: Substring) -> Int { line.prefix { $0 == " " }.count }

    /// The properties that are a `Mutex`, with the types that have them.
    private static func locks(in source: String) -> [String] {
        var types: [(name: String, indentation: Int)] = []
        var locks: [String] = []
        for line in source.split(separator: "\n") {
            let indentation = indentation(line)
            if let type = line.firstMatch(of: /^[a-z ]*\b(?:class|struct|enum|actor) ([A-Z][A-Za-z]*)/) {
                types.removeAll { $0.indentation >= indentation }
                types.append((String(type.1), indentation))
            }
            guard let lock = line.firstMatch(of: /\b(?:let|var) ([a-zA-Z]+)(?: = Mutex[<(]|: Mutex<)/),
                let owner = types.last(where: { $0.indentation < indentation })
            else { continue }
            locks.append("\(owner.name).\(lock.1)")
        }
        return locks
    }

    @Test func eachLockIsNamedAndNoOther() throws {
        let locks = Set(sources.filter { $0.contains("Mutex") }.flatMap(Self.locks))
        #expect(
            locks.count > 45 && locks.isSuperset(of: ["OpenResource.state", "Latch.remaining", "AuditTurn.isTaken"]))
        let tables = try #require(text.components(separatedBy: "\n## Every lock\n").last)
            .components(separatedBy: "\n## ")[0]
        let rows = tables.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let named = rows.flatMap { row in
            row.split(separator: "|", omittingEmptySubsequences: false)[1].matches(of: /`([A-Za-z]+\.[a-zA-Z]+)`/).map {
                String($0.1)
            }
        }
        #expect(named.count == Set(named).count)
        #expect(Set(named).subtracting(locks) == [], "not in the code")
        #expect(locks.subtracting(named) == [], "not on the page")
    }

    @Test func eachQueueIsNamed() {
        let labels = Set(
            sources.filter { $0.contains("label: \"reelcache.") }.flatMap {
                $0.matches(of: /label: "(reelcache\.[a-z-]+)"/).map { String($0.1) }
            })
        #expect(labels.count >= 5)
        for label in labels { #expect(text.contains("`\(label)`"), "\(label)") }
    }
}
