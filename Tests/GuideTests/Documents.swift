import Foundation
import Synchronization
import Testing

/// The documents of this repository.
enum Documents {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The documents for users, operators and programs, by their paths from the root. Their commands are run.
    static let guide = ["README.md"] + ["guide", "operators", "programs"].flatMap { pages(below: "docs/\($0)") }

    /// All documents whose links are checked.
    static let all = ["README.md", "Benchmarks/README.md"] + pages(below: "docs")

    /// Each is read once: in a debug build that takes a second.
    static func page(_ path: String) throws -> MarkdownPage {
        if let known = read.withLock({ $0[path] }) { return known }
        let page = MarkdownPage(try text(path))
        read.withLock { $0[path] = page }
        return page
    }

    private static let read = Mutex<[String: MarkdownPage]>([:])

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
    }

    private static func pages(below directory: String) -> [String] {
        let paths = FileManager.default.enumerator(atPath: root.appendingPathComponent(directory).path)
        return (paths?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(".md") }.sorted().map {
            "\(directory)/\($0)"
        }
    }

    /// The tests of this repository, such as `Example.cacheOfItsOwnStays` in `Tests/*/ExampleTests.swift`.
    static let tests: Result<Set<String>, any Error> = Result {
        var tests = Set<String>()
        let paths = FileManager.default.enumerator(atPath: root.appendingPathComponent("Tests").path)
        for path in paths?.compactMap({ $0 as? String }) ?? [] where path.hasSuffix("Tests.swift") {
            let suite = (path as NSString).lastPathComponent.dropLast("Tests.swift".count)
            for part in try text("Tests/" + path).components(separatedBy: "@Test").dropFirst() {
                if let name = part.firstMatch(of: /\bfunc ([A-Za-z0-9]+)/) { tests.insert("\(suite).\(name.1)") }
            }
        }
        return tests
    }
}
