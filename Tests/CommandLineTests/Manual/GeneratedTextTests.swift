import Configuration
import Foundation
import TestSupport
import Testing

@testable import ReelcacheCLI

/// What is generated and committed is what the program would generate now; nothing lacks words.
@Suite struct GeneratedTextTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent()

    private let tool: ToolInfo

    init() throws {
        tool = try ToolInfo(json: ReelcacheCommand.run(["--experimental-dump-help"]).stdout)
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    // MARK: What is committed

    @Test func sampleFileIsTheGeneratedOne() throws {
        #expect(try Self.text("config/reelcache.yaml") == Manual.sampleFile, "run scripts/generate")
    }

    @Test(arguments: ["commands.md", "configuration.md"]) func guideHasTheGeneratedParts(page: String) throws {
        let text = try Self.text("docs/guide/\(page)")
        #expect(try Manual(tool).guidePage(text) == text, "run scripts/generate")
    }

    @Test func everyCommandAndOptionIsInTheGuide() throws {
        let text = try Self.text("docs/guide/commands.md")
        for command in tool.command.visibleSubcommands {
            #expect(
                text.contains("\n## \(command.commandName)\n")
                    || text.contains("\n## reelcache \(command.commandName)\n"))
            for leaf in command.leaves where leaf.path.count > 2 {
                #expect(text.contains("\n### \(leaf.path.joined(separator: " "))\n"))
            }
            for option in command.leaves.flatMap(\.visibleArguments).flatMap(\.allNames) {
                #expect(text.contains("`\(option.text)`") || text.contains("`\(option.text) "), "\(option.text)")
            }
        }
    }

    @Test func everyKeyIsInTheGuide() throws {
        let text = try Self.text("docs/guide/configuration.md")
        for setting in Setting.all { #expect(text.contains("\n### \(setting.key)\n"), "\(setting.key)") }
        for key in RuleKey.all { #expect(text.contains("\n### Rule key \(key.name)\n"), "\(key.name)") }
    }

    // MARK: What --help says

    @Test func everythingHasWords() {
        for command in tool.command.leaves + tool.command.visibleSubcommands {
            let name = command.path.joined(separator: " ")
            #expect(command.abstract?.hasSuffix(".") == true, "\(name)")
            for argument in command.visibleArguments {
                let words = argument.words
                #expect(words.hasSuffix(".") || words.hasSuffix(")"), "\(name): \(words)")
                #expect(words.first?.isUppercase == true, "\(name): \(words)")
                #expect(!words.contains("`"), "\(name): \(words)")
            }
        }
    }

    @Test func everyDefaultIsThatOfItsSetting() throws {
        let serve = try #require(tool.command.visibleSubcommands.first { $0.commandName == ToolInfo.serve })
        for setting in Setting.all where !setting.isFileOnly && setting.command == nil {
            let option = serve.visibleArguments.first { $0.allNames.contains { $0.text == setting.flag } }
            #expect(option?.words.hasPrefix(setting.summary) == true, "\(setting.key)")
            #expect(option?.words.hasSuffix("(default: \(setting.standard))") == true, "\(setting.key)")
        }
    }

    /// The lines of a `discussion` that begin with `reelcache` are commands that could be typed.
    @Test func examplesNameCommandsAndOptionsThatExist() {
        var count = 0
        for command in tool.command.visibleSubcommands + tool.command.leaves {
            for line in Prose(command.discussion ?? "").literals where line.hasPrefix("reelcache ") {
                count += 1
                #expect(fault(of: line) == nil, "\(fault(of: line) ?? "")")
            }
            for line in Prose(command.discussion ?? "").literals { #expect(line.count <= 77, "\(line)") }
        }
        #expect(count >= 20)
    }

    private func fault(of line: String) -> String? {
        let words = line.split(separator: " ").dropFirst().map(String.init)
        var command = tool.command
        var rest = words[...]
        while let word = rest.first, let next = command.visibleSubcommands.first(where: { $0.commandName == word }) {
            (command, rest) = (next, rest.dropFirst())
        }
        guard command.commandName != tool.command.commandName else { return "there is no such command: \(line)" }
        let known = Set(command.leaves.flatMap(\.visibleArguments).flatMap(\.allNames).map(\.text))
        let options = rest.prefix { $0 != "--" }.filter { $0.hasPrefix("-") && $0 != "-" }
        return options.first { !known.contains($0) }.map { "\(command.commandName) has no \($0): \(line)" }
    }
}
