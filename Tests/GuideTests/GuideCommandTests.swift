import Foundation
import TestSupport
import Testing

/// Runs every command that the guide asks its readers to type, unchanged.
@Suite struct GuideCommandTests {
    @Test(
        .enabled(if: GuideWorld.isExpected, "\(GuideWorld.obstacle ?? "")"),
        arguments: try Documents.guide.filter { try !GuidePage($0).commands.isEmpty })
    func commandsWork(path: String) async throws {
        try GuideWorld.check()
        let page = try GuidePage(path)
        let results = try await blocking { try GuideWorld.run(page.commands.map { ($0.block, $0.proxyRuns) }) }
        #expect(results.count == page.commands.count, "\(path): the world ended before all was run")
        for (command, result) in zip(page.commands, results) { check(command, result, page) }
    }

    private func check(_ command: GuidePage.Command, _ result: GuideWorld.BlockResult, _ page: GuidePage) {
        let place = "\(page.path):\(command.block.line + result.at - 1): \(result.command)"
        switch (result.status, command.fails) {
        case ("0", true): Issue.record("\(place)\ndid not fail, as the page says it does:\n\(result.output)")
        case ("0", false), (_, true): break
        case ("127", _) where !GuideWorld.isCI:
            print("\(place)\nis not installed, and was not tried:\n\(result.output)")
        default: Issue.record("\(place)\nfailed (\(result.status)):\n\(result.output)")
        }
        if let shape = page.shape(after: command.block) { check(shape, command, result, page) }
    }

    /// A block of JSON right after commands shows what they print.
    private func check(
        _ shape: MarkdownPage.Block, _ command: GuidePage.Command, _ result: GuideWorld.BlockResult, _ page: GuidePage
    ) {
        let shown = JSONShape(shape.text), printed = JSONShape(result.output)
        if command.showsMore, let shown, let printed, shown.covers(printed) { return }
        #expect(
            shown != nil && shown == printed,
            "\(page.path):\(shape.line): the output has other members:\n\(result.output)")
    }

    @Test(arguments: Documents.guide)
    func everyBlockSaysWhatItIs(path: String) throws {
        let languages: Set = ["sh", "console", "text", "yaml", "json", "swift", "html", "ini", "nginx"]
        for block in try Documents.page(path).blocks {
            #expect(
                languages.contains(block.language), "\(path):\(block.line - 1): '\(block.language)' is none of these")
            if block.language == "json" { #expect(JSONShape(block.text) != nil, "\(path):\(block.line): no JSON") }
        }
    }

    /// Other tests and scripts run the blocks that are not run here.
    @Test(arguments: Documents.guide)
    func markersNameWhoRunsABlock(path: String) throws {
        let tests = try Documents.tests.get()
        for block in try Documents.page(path).blocks {
            switch try RunMarker(block.marker) {
            case .elsewhere(let name):
                let isThere = tests.contains(name) || Documents.exists(name)
                #expect(isThere, "\(path):\(block.line): there is no \(name)")
            case .packages: #expect(PackageTests.pages.contains(path), "\(path):\(block.line): its page is not tried")
            case .here:
                #expect(block.marker == nil || ["sh", "yaml"].contains(block.language), "\(path):\(block.line)")
            }
        }
    }

    @Test(arguments: Documents.guide)
    func configurationsAreThoseThatTheProgramReads(path: String) throws {
        for block in try Documents.page(path).blocks where block.language == "yaml" {
            let directory = try TemporaryDirectory()
            let file = directory.file("reelcache.yaml")
            try block.text.write(toFile: file, atomically: true, encoding: .utf8)
            let outcome = try ReelcacheCommand.run(["config", "check", file])
            let fails = try RunMarker(block.marker) == .here(proxyRuns: true, fails: true, showsMore: false)
            #expect(
                (outcome.exit != .exited(0)) == fails, "\(path):\(block.line):\n\(outcome.stdout)\(outcome.stderr)")
        }
    }

    /// The programs that readers copy are built and run with the tests.
    @Test(arguments: Documents.guide)
    func piecesOfSwiftAreLinesOfTheExamples(path: String) throws {
        let examples = try [
            "Examples/Embedding/EmbeddingExample.swift", "Examples/Short/main.swift", "Examples/Short/Package.swift",
        ]
        .map { Self.lines(try Documents.text($0)) }
        for block in try Documents.page(path).blocks where block.language == "swift" {
            let piece = Self.lines(block.text).dropLast()
            let isThere = examples.contains { lines in lines.indices.contains { lines[$0...].starts(with: piece) } }
            #expect(isThere, "\(path):\(block.line): these lines are in no example")
        }
    }

    private static func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map {
            $0.drop(while: \.isWhitespace)
        }
    }
}
