import Configuration

/// `reelcache.1`: the program, its commands, and everything that these have in common.
struct RootPage {
    static let name = "reelcache"

    private let root: ToolInfo.Command
    private let edition: Edition

    init(_ root: ToolInfo.Command, edition: Edition) { (self.root, self.edition) = (root, edition) }

    var text: String {
        var page = Mdoc(
            name: Self.name, section: 1, description: "local HTTP cache for video and audio", edition: edition)
        page.section("SYNOPSIS")
        page.line(".Nm\n.Ar command\n.Op Ar options")
        page.line(".Nm\n.Fl \\-version")
        page.line(".Nm\n.Cm help\n.Op Ar command")
        page.section("DESCRIPTION")
        page.prose(Self.description)
        page.section("COMMANDS")
        page.list(
            root.visibleSubcommands.map { ("Xr \(CommandPage.name($0)) 1", Prose($0.abstract ?? "")) })
        page.section("ENVIRONMENT")
        page.list(Self.environment.map { ("Ev \(Mdoc.argument($0.0))", Prose($0.1)) })
        page.section("FILES")
        page.list(Self.files.map { ("Pa \(Mdoc.argument($0.0))", Prose($0.1)) })
        page.section("EXIT STATUS")
        page.prose(Self.exitStatus)
        page.section("SIGNALS")
        page.prose(Self.signalsIntroduction)
        page.list(Self.signals.map { ("Dv \($0.0)", Prose($0.1)) })
        page.section("EXAMPLES")
        page.prose(Self.examples)
        page.seeAlso(
            root.visibleSubcommands.map { (CommandPage.name($0), 1) } + [(ConfigurationPage.name, 5)])
        return page.text
    }

    private static let description = """
        Reelcache is a caching HTTP proxy for media players. Put `http://127.0.0.1:7335/https/` before the rest of a \
        media URL, and the player reads through the cache: bytes that were read once come from the disk, and only \
        missing ranges are fetched from the origin. `reelcache url` prints such a URL.

        `reelcache serve` runs the proxy. The other commands use the running proxy if there is one; otherwise they \
        open the cache directly. One process owns a cache directory at a time.

        No configuration is needed. The settings are described in `reelcache.yaml(5)`; each of them \
        \(Setting.areFlags) and an environment variable.

        URLs in listings, messages and logs show `***` in place of passwords and tokens, unless a command is given \
        --secrets.
        """

    static let exitStatus = """
        The command exits with 0 if it succeeded, with 1 if it failed, with 2 if it was used wrongly or a setting cannot \
        work, and with 3 if it succeeded for some of several URLs and failed for the others.
        """

    private static let environment = [
        ("REELCACHE_CONFIG", "The configuration file, unless --config names one."),
        (
            "REELCACHE_*",
            """
            A setting, such as `REELCACHE_MAX_SIZE` for the key `max_size`. Commas separate the elements of a list. \
            An empty variable counts as unset. A variable overrides the configuration file, and a flag \
            overrides the variable.
            """
        ),
        ("XDG_CACHE_HOME", "The directory of the cache, `$XDG_CACHE_HOME/reelcache`, unless `cache_dir` is set."),
        ("XDG_CONFIG_HOME", "The directory of the user's configuration."),
        ("HOME", "The parent of both directories if these two are not set: `~/.cache` and `~/.config`."),
        ("LC_ALL", "With `LC_CTYPE` and `LANG`, whether the terminal shows block characters and letters beyond ASCII."),
        ("TERM", "Whether the terminal can draw progress bars."),
        ("NO_COLOR", "If it is not empty, `reelcache top` uses no colours."),
        ("VISUAL, EDITOR", "The editor of `reelcache config edit`; vi if neither is set."),
    ]

    private static let files = [
        ("~/.config/reelcache/reelcache.yaml", "The user's configuration file, described in `reelcache.yaml(5)`."),
        ("/etc/reelcache/reelcache.yaml", "The system's configuration file, read if the user has none."),
        ("~/.cache/reelcache", "The cache. It is private to the user."),
        (
            "~/.cache/reelcache/control-token",
            "The bearer token that a program must present to change something through the HTTP API."
        ),
    ]

    private static let signalsIntroduction = "`reelcache serve` responds to these signals:"

    private static let signals = [
        (
            "SIGINT",
            """
            With `SIGTERM`: let running responses finish for up to `drain_time` (five seconds), save the index, and \
            exit with 0. A second signal cuts them, and kills the process if it has not ended a second later.
            """
        ),
        (
            "SIGHUP",
            """
            Read the configuration again and reopen the access log. If the terminal of the proxy \
            was closed, stop as `SIGTERM` does, unless the proxy was started with `nohup`.
            """
        ),
    ]

    private static let examples = """
        Run the proxy, and play a film through it:

          reelcache serve
          mpv "$(reelcache url https://example.org/film.mp4)"

        Download a list of episodes, one URL on each line, to watch without a network:

          reelcache prefetch -i season.txt

        See what is cached, and remove what has not been read for a month:

          reelcache ls --sort size
          reelcache rm --older-than 30d
        """
}
