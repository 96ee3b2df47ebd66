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

    @Test func everyCommandAndOptionIsInItsManualPage() throws {
        let pages = manualPages
        for command in tool.command.visibleSubcommands {
            let text = try #require(pages["man1/reelcache-\(command.commandName).1"])
            for leaf in command.leaves where leaf.path.count > 2 {
                #expect(text.contains("\n.Ss \(leaf.path.joined(separator: " "))\n"), "\(leaf.path)")
            }
            let arguments = command.leaves.flatMap { tool.arguments(of: $0).own }
            let listed = Set(text.matches(of: /(?m)^\.It .*$/).flatMap { $0.output.matches(of: /Fl (\S+)/).map(\.1) })
            for name in arguments.flatMap(\.allNames) {
                let flag = Mdoc.argument(String(name.text.dropFirst()))
                #expect(listed.contains(flag[...]), "\(command.commandName): \(name.text)")
            }
            let refersToServe = text.contains("takes the options of\n.Xr reelcache-serve 1 .")
            #expect(refersToServe == command.leaves.contains { tool.arguments(of: $0).takesThoseOfServe })
        }
    }

    @Test func everyKeyIsInTheManualAndTheSampleFile() throws {
        let page = try #require(manualPages["man5/reelcache.yaml.5"])
        for setting in Setting.all {
            let heading = setting.key == "rules" ? ".Sh RULES" : ".Ss \(Mdoc.escaped(setting.key)):"
            #expect(page.contains("\n\(heading)"), "\(setting.key)")
            #expect(Manual.sampleFile.contains("\n#\(setting.key):"), "\(setting.key)")
        }
        let rules = try #require(page.components(separatedBy: "\n.Sh RULES\n").last)
        for key in RuleKey.all {
            #expect(rules.contains("\n.Ss \(Mdoc.escaped(key.name)):"), "\(key.name)")
            #expect(Manual.sampleFile.contains("\n#   \(key.name) "), "\(key.name)")
        }
    }

    private var manualPages: [String: String] {
        let edition = Edition(version: "1", date: "May 1, 2026")
        return Dictionary(uniqueKeysWithValues: Manual(tool).pages(edition).map { ($0.path, $0.text) })
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
