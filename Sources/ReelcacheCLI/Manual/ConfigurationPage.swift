import Configuration

/// `reelcache.yaml.5`: every key of the configuration file.
struct ConfigurationPage {
    static let name = "reelcache.yaml"

    private let edition: Edition
    private let commands: [String]

    /// - Parameter commands: the names of the commands' pages.
    init(edition: Edition, commands: [String]) { (self.edition, self.commands) = (edition, commands) }

    var text: String {
        var page = Mdoc(name: Self.name, section: 5, description: "configuration file of reelcache", edition: edition)
        page.section("DESCRIPTION")
        page.prose(Self.description)
        page.section("KEYS")
        for setting in Setting.all where setting.key != Self.rules {
            Self.describe(setting.key, setting.placeholder, setting.words, setting.example, on: &page)
        }
        page.section("RULES")
        if let rules = Setting[Self.rules] {
            page.prose(rules.words)
            for key in RuleKey.all { Self.describe(key.name, "value", key.words, key.example, on: &page) }
        }
        page.section("FILES")
        page.list(Self.files.map { ("Pa \(Mdoc.argument($0.0))", Prose($0.1)) })
        page.section("EXAMPLES")
        page.prose("A cache of 100 GB that may fetch from two private hosts or networks:")
        page.literal(["max_size: 100GB", "allow: [nas.local, 192.168.1.0/24]"])
        page.prose("Rules:")
        page.literal(["rules:"] + (Setting[Self.rules]?.example ?? "").split(separator: "\n").map(String.init))
        page.seeAlso(([RootPage.name] + commands).map { ($0, 1) })
        return page.text
    }

    private static let rules = "rules"

    private static func describe(
        _ key: String, _ placeholder: String, _ words: Prose, _ example: String, on page: inout Mdoc
    ) {
        page.subsection("\(key): \(placeholder)")
        page.prose(words)
        page.prose("For example:", continues: true)
        // A list begins on a line of its own (YAML 1.2 §8.2.1).
        let lines = "\(key):\(example.hasPrefix("- ") ? "\n" : " ")\(example)".split(separator: "\n")
        page.literal(lines.map(String.init))
    }

    private static let description = """
        Reelcache reads its settings from a YAML file. Every key is optional. It reads a single file: the one \
        that --config or `$REELCACHE_CONFIG` names, otherwise the first of the files below that exists.

        Each key \(Setting.areFlags) and an environment variable: the key `max_size` is \
        the flag `--max-size` and the variable `REELCACHE_MAX_SIZE`. Flags override variables, and variables override \
        the file. A list replaces another; it does not add to it. In a variable, the elements of a list are separated by \
        commas.

        A size is a number with a unit: B, kB, MB, GB or TB for powers of 10, KiB, MiB, GiB or TiB for powers of 2. A \
        time is a number with s, m, h, d or w. Both may have a decimal point.

        `reelcache config check` reports unknown keys and bad values with their lines, and `reelcache config show` \
        prints each setting and its source. On SIGHUP a running proxy reads all of them again. If the file \
        contains a mistake or is missing, nothing changes. The log names mistakes, and changes that need a restart.
        """

    private static let files = [
        (
            "$XDG_CONFIG_HOME/reelcache/reelcache.yaml",
            "The user's file; in `~/.config/reelcache` if the variable is not set."
        ),
        ("/etc/reelcache/reelcache.yaml", "The system's file."),
    ]
}

private extension Setting {
    var words: Prose {
        Prose([summary, details, SettingRemarks.text(self)].filter { !$0.isEmpty }.joined(separator: "\n\n"))
    }
}

private extension RuleKey {
    var words: Prose { Prose([summary, details].filter { !$0.isEmpty }.joined(separator: "\n\n")) }
}
