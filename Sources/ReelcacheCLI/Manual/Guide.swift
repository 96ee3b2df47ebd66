import Configuration

/// Generates parts of the guide: the options of each command for `commands.md`, the keys for `configuration.md`.
struct Guide {
    private let tool: ToolInfo

    init(_ tool: ToolInfo) { self.tool = tool }

    /// The part that lists the commands without a part of their own.
    private static let others = "other commands"

    /// A page with its generated parts generated again.
    func page(_ text: String) throws -> String {
        let parts = GeneratedParts(text)
        let present = Set(parts.names)
        return try parts.filled { name in
            switch name {
            case "settings": Self.settings
            case "rule keys": Self.ruleKeys
            case Self.others:
                tool.command.visibleSubcommands.filter { !present.contains($0.commandName) }.map(section)
                    .joined(separator: "\n\n")
            default: tool.command.visibleSubcommands.first { $0.commandName == name }.map(options)
            }
        }
    }

    // MARK: Commands

    /// The section of a command that has no text in the guide yet.
    private func section(_ command: ToolInfo.Command) -> String {
        let words = Prose([command.abstract, command.discussion].compactMap(\.self).joined(separator: "\n\n"))
        return "## reelcache \(command.commandName)\n\n\(Markdown.blocks(words))\n\n\(options(command))"
    }

    /// The table of a command's options, or one for each of its subcommands.
    private func options(_ command: ToolInfo.Command) -> String {
        guard !command.visibleSubcommands.isEmpty else { return table(command) }
        return command.leaves.map { leaf in
            let words = Prose([leaf.abstract, leaf.discussion].compactMap(\.self).joined(separator: "\n\n"))
            return "### \(leaf.path.joined(separator: " "))\n\n\(Markdown.blocks(words))\n\n\(table(leaf))"
        }.joined(separator: "\n\n")
    }

    private func table(_ command: ToolInfo.Command) -> String {
        let (own, others) = tool.arguments(of: command)
        let isServe = command.commandName == ToolInfo.serve
        let rows = own.filter { isServe || !Self.isCommon($0) }.map { [Self.names($0), Markdown.line($0.words)] }
        let remark = others ? "\n\nIt also takes the options of `reelcache \(ToolInfo.serve)`." : ""
        return (rows.isEmpty ? "It has no options of its own." : Markdown.table(["Option", "Meaning"], rows)) + remark
    }

    /// Whether every command takes this option. The guide describes such options once.
    private static func isCommon(_ argument: ToolInfo.Argument) -> Bool {
        ["cache-dir", "config"].contains(argument.allNames.first?.name)
    }

    private static func names(_ argument: ToolInfo.Argument) -> String {
        let value = argument.placeholder.map {
            argument.allNames.isEmpty ? $0 + (argument.isRepeating ? "..." : "") : " " + $0
        }
        let names = argument.allNames.map(\.text)
        guard let last = names.last else { return Markdown.code(value ?? "") }
        return (names.dropLast() + [last + (value ?? "")]).map(Markdown.code).joined(separator: ", ")
    }

    // MARK: Configuration

    private static var settings: String {
        let rows = Setting.all.map { setting in
            [
                "[\(Markdown.code(setting.key))](#\(setting.key))",
                setting.defaultValue.map(Markdown.code) ?? Markdown.line(setting.standard),
                SettingRemarks.effect(setting),
            ]
        }
        return Markdown.table(["Key", "Default", "A change takes effect"], rows) + "\n\n"
            + Setting.all.map(section).joined(separator: "\n\n")
    }

    private static func section(_ setting: Setting) -> String {
        let words = Markdown.blocks(Prose(setting.summary + "\n\n" + setting.details))
        let example =
            setting.example.contains("\n")
            ? "\(setting.key):\n\(setting.example)" : "\(setting.key): \(setting.example)"
        return
            "### \(setting.key)\n\n\(words)\n\n\(Markdown.line(SettingRemarks.text(setting)))\n\n```yaml\n\(example)\n```"
    }

    private static var ruleKeys: String {
        RuleKey.all.map { key in
            let words = Markdown.blocks(Prose(key.summary + "\n\n" + key.details))
            return "### Rule key \(key.name)\n\n\(words)\n\n```yaml\n\(example(key))\n```"
        }.joined(separator: "\n\n")
    }

    /// An example of a complete rule: a condition needs an effect, and some effects need a host.
    private static func example(_ key: RuleKey) -> String {
        let line = "\(key.name): \(key.example)"
        let rule = key.isEffect ? ["host: example.org", line] : [line, "bypass: true"]
        return "rules:\n- " + rule.joined(separator: "\n  ")
    }
}

/// Describes how to set a setting outside of the file, and when a change takes effect.
enum SettingRemarks {
    static func text(_ setting: Setting) -> String {
        let standard = setting.defaultValue.map { "`\($0)`" } ?? setting.standard
        var remarks = ["Default: \(standard)."]
        if setting.isFileOnly {
            remarks.append("There is no flag and no variable for this.")
        } else {
            remarks.append(flags(setting) + (setting.isList ? ", which may be repeated." : "."))
            remarks.append("Variable: `\(setting.variable)`.")
        }
        remarks.append("A change takes effect \(effect(setting)).")
        return remarks.joined(separator: " ")
    }

    private static func flags(_ setting: Setting) -> String {
        if let command = setting.command { return "Flag: \(setting.flag) of `reelcache \(command)`" }
        guard setting.isSwitch else { return "Flag: \(setting.flag)" }
        return "Flags: \(setting.flag), --no-\(setting.flag.dropFirst(2))"
    }

    /// When a change takes effect.
    static func effect(_ setting: Setting) -> String {
        if let command = setting.command { return "with the next `reelcache \(command)`" }
        return setting.needsRestart ? "after a restart" : "on SIGHUP"
    }
}
