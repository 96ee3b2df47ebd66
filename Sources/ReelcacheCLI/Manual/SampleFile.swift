import Configuration

/// `config/reelcache.yaml`, which users copy: every key with its description, commented out so that it has no effect.
extension Setting {
    /// Which keys are flags too, for a sentence: all except those that the file alone can set.
    static let areFlags: String = {
        let keys = all.filter(\.isFileOnly).map { "`\($0.key)`" }.joined(separator: ", ")
        let others = all.compactMap { setting in setting.command.map { "`\(setting.key)`: of `reelcache \($0)`" } }
        return "(except \(keys)) is also a flag of `reelcache serve` (\(others.joined(separator: ", ")))"
    }()
}

struct SampleFile {
    /// The width of comments in columns.
    private static let width = 100

    var text: String {
        ([Self.head] + Setting.all.map(Self.entry)).joined(separator: "\n\n") + "\n"
    }

    private static var head: String {
        let restart = Setting.all.filter(\.needsRestart).map(\.key)
        let list = "\(restart.dropLast().joined(separator: ", ")) and \(restart.last ?? "")"
        return Self.comment(
            Prose(
                """
                Configuration of Reelcache. Everything here is optional: the values shown are the defaults, or examples \
                where the default is not a fixed value. `reelcache config init` writes this file for you to edit.

                Reelcache reads the file that --config or `$REELCACHE_CONFIG` names, else \
                `$XDG_CONFIG_HOME/reelcache/reelcache.yaml` (`~/.config` if that is not set), else \
                `/etc/reelcache/reelcache.yaml`. Each key \(Setting.areFlags), such as `--max-size`, and an \
                environment variable, such as `REELCACHE_MAX_SIZE`. Flags override variables, and variables override this file.

                Sizes are written like 500MB or 20GB (powers of 10) or 512MiB (powers of 2), times like 30s, 5m, 12h or 7d.

                `reelcache config check` reports mistakes. A running proxy reads the file again on SIGHUP \
                (`systemctl --user reload reelcache`). Changes of \(list) take effect after a restart.
                """))
    }

    private static func entry(_ setting: Setting) -> String {
        var blocks = [comment(Prose(setting.summary + (setting.details.isEmpty ? "" : "\n\n" + setting.details)))]
        if setting.key == "rules" {
            blocks.append(contentsOf: ["#", comment(Prose("The keys of a rule:")), "#", ruleKeys])
        }
        blocks.append(comment(Prose(remarks(setting))))
        blocks.append(commented(setting.key, value: setting.defaultValue ?? setting.example))
        return blocks.filter { !$0.isEmpty }.joined(separator: "\n")
    }

    private static func remarks(_ setting: Setting) -> String {
        var remarks = setting.defaultValue == nil ? ["Default: \(setting.standard)."] : []
        if let command = setting.command {
            remarks.append("The flag is \(setting.flag) of reelcache \(command).")
        } else if setting.isFileOnly {
            remarks.append("There is no flag for this.")
        } else if setting.isList {
            remarks.append("The flag is \(setting.flag), which may be repeated.")
        }
        return remarks.joined(separator: " ")
    }

    private static func commented(_ key: String, value: String) -> String {
        guard value.contains("\n") else { return "#\(key): \(value)" }
        return (["\(key):"] + value.split(separator: "\n").map(String.init)).map { "#" + $0 }.joined(separator: "\n")
    }

    private static var ruleKeys: String {
        let width = (RuleKey.all.map(\.name.count).max() ?? 0) + 3
        return RuleKey.all.map { key in
            let lines = wrapped(
                plain(Prose(key.summary + " " + key.details.replacing("\n\n", with: " "))), to: Self.width - width)
            let name = key.name + String(repeating: " ", count: max(0, width - key.name.count)) // no trap: not below 0
            let indent = String(repeating: " ", count: width)
            return lines.enumerated().map { "#   " + ($0.offset == 0 ? name : indent) + $0.element }
                .joined(separator: "\n")
        }.joined(separator: "\n")
    }

    // MARK: Comments

    /// Paragraphs with an empty comment line between them; lines that are shown unchanged are indented.
    private static func comment(_ prose: Prose) -> String {
        prose.blocks.map { block in
            switch block {
            case .paragraph(let spans): wrapped(plain(spans), to: width).map { "# " + $0 }.joined(separator: "\n")
            case .literal(let lines): lines.map { "#   " + $0 }.joined(separator: "\n")
            }
        }.joined(separator: "\n#\n")
    }

    private static func plain(_ prose: Prose) -> String {
        prose.blocks.map { if case .paragraph(let spans) = $0 { plain(spans) } else { "" } }.joined(separator: " ")
    }

    private static func plain(_ spans: [Prose.Span]) -> String {
        spans.map {
            switch $0 {
            case .text(let text), .code(let text): text
            }
        }.joined()
    }

    /// Lines of at most this many characters; a longer word gets a longer line.
    static func wrapped(_ text: String, to width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= width { // no trap: lines of a page
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}
