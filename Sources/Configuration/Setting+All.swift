import DiskCache
import Reelcache

extension Setting {
    /// All settings. Flags with their help and completion, environment, file, `config show`, SIGHUP and the manual follow
    /// this table.
    package static let all: [Setting] = [
        Setting(
            "listen", .one(.listenAddress), at: \.proxy.listen, needsRestart: true,
            "Listen on this address: HOST:PORT, [IPV6]:PORT, or :PORT for all addresses, IPv4 and IPv6.",
            """
            Whoever reaches the proxy can fetch any public URL through it, so it warns when it listens beyond this \
            machine. To serve a network, use `mounts` with `any_origin: false`.
            """, example: "192.168.1.10:7335"),
        Setting(
            "names", .list(of: .hostName, flag: "name"), at: \.proxy.names, standard: "none", needsRestart: true,
            "Answer to this host name, besides the proxy's addresses and localhost.",
            """
            Requests that name any other host are answered with 421, because the page of another site could have its \
            own name resolve to this machine.
            """, example: "[tv.example]"),
        Setting(
            "trusted", .list(of: .trusted, flag: "trusted"), at: \.proxy.trusted, standard: "none", needsRestart: true,
            "Believe this balancer about its clients: an IP address, or a network such as 10.0.0.0/24.",
            """
            A balancer or web server in front of the proxy names the client, and the scheme, host and port that it used, \
            in `Forwarded` or in `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`; or in a PROXY header \
            (`proxy_protocol`). From these addresses the proxy uses them for the log, for limits per client and for the \
            addresses in playlists; from all others it ignores them. Reading `/stats` and `/api/v1` then needs a token \
            everywhere, as the balancer's clients may be anywhere.
            """, example: "[10.0.0.5]"),
        Setting(
            "proxy_protocol", .one(.bool), at: \.proxy.expectsProxyHeader, needsRestart: true,
            "Expect a header of the PROXY protocol, version 1 or 2, on each connection from a trusted address.",
            """
            Connections from other addresses begin with HTTP as usual. If the balancer runs on this machine, give it an \
            address of its own, so that players and commands of this machine still reach the proxy without it: \
            `source 127.0.0.2` for the server in HAProxy, and `trusted: [127.0.0.2]`. What a request itself states of its \
            client (`Forwarded`, `X-Forwarded-For`) counts only if the header names an address in `trusted`.
            """, example: "true"),
        Setting(
            "drain_time", .one(.time(in: ProxyConfiguration.drainTimeRange)), at: \.proxy.drainTime,
            "Give running responses this long to end when the proxy is stopped; up to 24h.",
            """
            On SIGTERM, `/healthz` answers 503 `draining` at once, and requests are still answered, until nothing runs or \
            the time is over. A second signal ends it at once.
            """, example: "1h"),
        Setting(
            "max_connections", .optional(.number(in: ProxyConfiguration.connectionsRange)), at: \.proxy.maxConnections,
            standard: "as many as the limit of open files allows",
            "Answer connections beyond this number with 503 and Retry-After.",
            """
            Idle connections are closed first, to make room. Without this setting, connections wait until there is room. \
            If the limit of open files allows fewer, connections beyond those are refused, and the log says so.
            """, example: "4000"),
        Setting(
            "max_connections_per_client", .optional(.number(in: ProxyConfiguration.connectionsRange)),
            at: \.proxy.maxConnectionsPerClient, standard: "any number",
            "Answer connections of a client beyond this number with 429 and Retry-After.",
            """
            A client is an IPv4 address, or an IPv6 network of 64 bits; behind a balancer in `trusted`, the one that it \
            names. Connections of a balancer that speaks HTTP serve many clients: there, the limit is for the requests \
            of a client that run at the same time.
            """, example: "100"),
        Setting(
            "max_requests_per_client", .optional(.requestRate), at: \.proxy.maxRequestsPerClient,
            standard: "any number",
            "Answer requests of a client beyond this rate with 429 and Retry-After: 100/s, 600/min or 5000/h.",
            """
            As many may come at once. The connection stays open.
            """, example: "600/min"),
        Setting(
            "cache_dir", .one(.path(.directory)), at: \.proxy.cacheDirectory,
            standard: "$XDG_CACHE_HOME/reelcache, else ~/.cache/reelcache", needsRestart: true,
            "Use the cache in this directory.",
            """
            The directory is created if it is missing. In the configuration file the path must be absolute or begin with `~/`. One process at a time owns a cache \
            directory.
            """, example: "/srv/reelcache"),
        Setting(
            "max_size", .one(.size(atLeast: CapacityLedger.smallestLimit)), at: \.proxy.maxSize,
            "Limit the space that the cache takes on the disk; at least 16MB.",
            """
            Space is reserved before it is written, so the cache never exceeds the limit. When it is full, the parts \
            that were read least recently are evicted; pinned resources stay. A film larger than the cache still plays.
            """, example: "100GB"),
        Setting(
            "min_free", .one(.size(atLeast: 0)), at: \.proxy.minFree,
            "Keep this much space free on the disk.",
            "The cache then takes less than `max_size` allows.", example: "5GB"),
        Setting(
            "max_short_responses", .one(.size(atLeast: 0)), at: \.proxy.maxShortResponses,
            "Use this much memory for answers that are not media, such as 404 and redirects; 0 stores none.",
            """
            They are stored for as long as their origin says (`Cache-Control: max-age`, `Expires`), with bodies of up to \
            64 KiB, and forgotten when the proxy ends. They never take the place of media. The rule key `heuristic` \
            stores some of them without a stated lifetime.
            """, example: "16MiB"),
        Setting(
            "max_buffered", .optional(.size(atLeast: ProxyConfiguration.leastBuffered)), at: \.proxy.maxBuffered,
            standard: "a sixteenth of the memory, 16MB to 24MB",
            "Use this much memory for bytes that wait for players and origins; at least 4MiB.",
            """
            These are answers that are not stored and whose players read slowly or have paused, long playlists and \
            lists while they are sent, bodies of requests, and what is not on the disk yet. Nothing is dropped: the \
            less is left, the less is read ahead of each player, down to 64 KiB, and while nothing is left, a playlist \
            or list of more than 64 KiB is answered with 503 (`proxy-busy`). A quarter is set aside for that, and one \
            client has three quarters of the rest at most. What is cached takes nothing of it.
            """, example: "256MiB"),
        Setting(
            "allow", .list(of: .privateOrigin), at: \.proxy.allow, standard: "none",
            "Allow fetching from this private origin: a host name, an address, or a network such as 192.168.1.0/24.",
            """
            Public origins need no entry. Everything else is refused with 403, whatever name leads to it: the \
            addresses and networks of this machine, and loopback, private and link-local addresses. Otherwise the \
            proxy would be a way into the network that it runs in.
            """, example: "[nas.local, 192.168.1.0/24]"),
        Setting(
            "mounts", .mounts, at: \.proxy.configuredMounts, standard: "none",
            "Serve a part of an origin below a path of the proxy: /tv/=https://origin.example/vod/. Both end with /.",
            """
            In this example, `/tv/a.mp4` is `https://origin.example/vod/a.mp4`. Through a mount, requests of all \
            methods reach the origin; only GET and HEAD are cached. For whom the cache stores may differ from one \
            mount to the next: write `/tv/: {origin: https://origin.example/vod/, cache: private}` (see `cache`), or \
            `/tv/=https://origin.example/vod/ private` in a flag.
            """, example: "{/tv/: https://origin.example/vod/}"),
        Setting(
            "any_origin", .one(.bool), at: \.proxy.servesAnyOrigin,
            """
            Let players name any origin, by /https/HOST/PATH or by using the proxy as their http_proxy. Otherwise, \
            serve mounts only.
            """,
            "Set this to `false` where the proxy listens beyond this machine.", example: "false"),
        Setting(
            "cache", .optional(.cacheMode), at: \.proxy.cache,
            standard: "shared if only mounts are served, otherwise private",
            "Store responses for many users (shared), or for one user or some who trust each other (private).",
            """
            A shared cache passes on what an origin means for one user, and does not store it: `private`, and what a \
            client's `Authorization` opened, unless the origin allows it (`public`, `s-maxage`, `must-revalidate`). It \
            obeys `s-maxage`, `proxy-revalidate` and the `targeted_fields`. A mount may have its own `cache`; it holds \
            for the mount's URLs in whatever form they are requested. What a private cache has stored for one user \
            answers nobody once the cache is shared.
            """, example: "shared"),
        Setting(
            "default_ttl", .optional(.time(in: ProxyConfiguration.defaultTTLRange)), at: \.proxy.defaultTTL,
            standard: "10 min in a private cache, 0 s in a shared one",
            "Keep responses fresh for this long if their origin states no lifetime.",
            """
            If the origin states when the file was last changed, it is fresh for a tenth of the time since then (at most \
            a week), but no less than this. Feeds, DASH and unfinished HLS without a lifetime are validated. The \
            key `ttl` of a rule takes precedence.
            """, example: "1h"),
        Setting(
            "targeted_fields", .list(of: .targetedField, flag: "targeted-field"), at: \.proxy.targetedFields,
            "Obey this field in place of Cache-Control and Expires, in a shared cache. Of several, the first that is valid.",
            """
            Such fields (RFC 9213) are for caches between origins and users; players get them and `Cache-Control` as \
            the origin sent them. Their names end with `-Cache-Control`. `[]` for none.
            """, example: "[Edge-Cache-Control, CDN-Cache-Control]"),
        Setting(
            "tunnel", .one(.bool), at: \.proxy.tunnels,
            """
            Let players that use the proxy as their http_proxy reach https origins with CONNECT. Nothing in a tunnel \
            is cached.
            """,
            "Use `/https/HOST/PATH` for what should be cached. A tunnel leads to the same addresses that may be fetched from.",
            example: "true"),
        Setting(
            "tunnel_ports", .list(of: .number(in: 1...65535), flag: "tunnel-port"), at: \.proxy.tunnelPorts,
            "Let CONNECT lead to this port; 1 to 65535.", example: "[443, 8443]"),
        Setting(
            "max_body", .optional(.size(atLeast: 0)), at: \.proxy.largestMountBody, standard: "any size",
            "Limit the body of a request through a mount. A larger one is answered with 413.",
            """
            Bodies stream through the proxy and take no room in the cache. If the length is announced and too large, \
            nothing is sent to the origin.
            """, example: "100MB"),
        Setting(
            "offline", .one(.bool), at: \.proxy.isOffline,
            "Never contact an origin: play what is cached, and answer 504 for the rest.",
            "Cached media plays even if its origin requires that it be revalidated.", example: "true"),
        Setting(
            "play_pinned", .one(.bool), at: \.proxy.playsPinned,
            """
            Play pinned and downloaded media while its origin cannot be reached or no longer has it, even if the \
            origin forbids that (no-cache, must-revalidate).
            """,
            "With `false`, the origin's directives apply. The key `play_stale` of a rule takes precedence.",
            example: "false"),
        Setting(
            "fill", .one(.fill), at: \.proxy.fill,
            "Fetch this much beyond what players request: read (nothing), ahead SIZE, end or whole.",
            """
            The policies are:

              read         nothing more
              ahead SIZE   up to SIZE past the furthest reader; then the transfer pauses
              end          to the end of the file, even after the player has left
              whole        the whole file

            `ahead` alone means `ahead 32MiB`. When the last player has left, the transfer continues for as many \
            bytes as were read, 8 MiB at most.
            """, example: "whole"),
        Setting(
            "ahead_segments", .one(.number(in: ProxyConfiguration.aheadSegmentsRange)), at: \.proxy.aheadSegments,
            "Fetch this many segments of an HLS or DASH stream after the one being played; 0 to 20.",
            """
            They are then cached before the player asks for them. After a seek or a switch to another rendition, the \
            proxy continues from the new place at once. Nothing is fetched ahead with 0, with `fill: read`, or where a \
            rule says `metered`.
            """, example: "5"),
        Setting(
            "prefetch_next", .one(.bool), at: \.proxy.prefetchesNext,
            "Download the next episode, file of a list, or number of a series when most of one was played.",
            """
            The download begins when a player has read three quarters of an item; it has low priority and is not \
            pinned. The next item is the next newer one of a podcast or the next entry of an M3U, PLS or XSPF list, if \
            the feed or list was read through the proxy or is a subscribed feed, and otherwise the next number: \
            `show-s01e02.mp4` after `show-s01e01.mp4`, if its origin has it. Nothing is downloaded where a rule says \
            `metered`, or for pages of other sites that `web_origins` does not name. `reelcache play --prefetch-next` \
            does it for one item, or for the items of one feed or list.
            """, example: "true"),
        Setting(
            "ignore_reload", .optional(.bool), at: \.proxy.ignoresReload,
            standard: "only segments that a playlist names",
            "Answer from the cache while a response is fresh, even if the player asks to revalidate it (no-cache, max-age=0).",
            """
            Some players send `no-cache` with every request. With `false` they get what they ask for. The default is \
            to ignore the request for segments that a playlist names, because their content does not change.
            """, example: "true"),
        Setting(
            "max_downloads", .one(.number(in: ProxyConfiguration.maxDownloadsRange)), at: \.proxy.maxDownloads,
            "Run at most this many downloads at once; 1 to 64.",
            "`reelcache downloads set` changes it until the proxy ends.", example: "1"),
        Setting(
            "download_rate", .one(.rate), at: \.proxy.downloadRate,
            "Limit all downloads together to this many bytes per second, such as 2MB; none for no limit.",
            "What players read is not limited. `reelcache downloads set` changes the limit until the proxy ends.",
            example: "2MB"),
        Setting(
            "schedule", .schedule, at: \.proxy.downloadSchedule, standard: "downloads run at any time",
            """
            Download in this window of the week, in local time, and at this rate: 01:00-06:30=unlimited, \
            Sat,Sun 08:00-12:00=2MB, or else=500kB for the rest of the time.
            """,
            """
            The rate is that of all downloads together: bytes per second, `unlimited`, or `off` for no downloads. The \
            lower of it and `download_rate` applies. A window may end on the next day (`22:00-06:00`); days are `Mon` \
            to `Sun`, with commas or as a range (`Mon-Fri`). The first window that contains a time counts. Without \
            `else`, downloads wait outside of the windows.

            Downloads ordered with `--at-once` do not wait, and the rates do not apply to them. What players read is \
            not limited. If the system's time zone changes, restart the proxy.
            """, example: "{\"01:00-06:30\": unlimited, \"Sat,Sun 08:00-12:00\": 2MB, else: 500kB}"),
        Setting(
            "download_cap", .caps, at: \.proxy.downloadCaps, standard: "any number of bytes",
            "Let downloads fetch at most this much from origins in a day or a month of local time: 2GB/day, 40GB/month.",
            """
            Downloads then wait until the day or month has ended, and continue by themselves. What was cached before, \
            and what players fetch, does not count. Downloads ordered with `--at-once` do not wait, but are counted.
            """, example: "[2GB/day, 40GB/month]"),
        Setting(
            "download_retry_time", .one(.time(in: ProxyConfiguration.downloadRetryRange)),
            at: \.proxy.downloadRetryTime,
            "Retry a download whose origin fails for this long; 0s to 90d.",
            """
            After three attempts, it is held: it stays in the queue, and is tried again after a minute, then less and \
            less often, but at least once an hour, and when this machine's network changes. If no connection can be \
            made, other downloads from that origin wait meanwhile, and one of them tries first. With `0s` a download \
            fails for good after three attempts. What would fail again, such as 404, is not retried.
            """, example: "2d"),
        Setting(
            "linger", .one(.time(in: ProxyConfiguration.lingerRange)), at: \.proxy.linger, needsRestart: true,
            "Keep a transfer for this long after its last reader has left; 0s to 10m.",
            "Players disconnect and connect again when they seek.", example: "30s"),
        Setting(
            "connect_timeout", .one(.time(in: ProxyConfiguration.connectTimeoutRange)), at: \.proxy.connectTimeout,
            needsRestart: true,
            "Give up connecting to an origin after this time; 1s to 10m.",
            "It covers looking up the name, connecting, and the TLS handshake.", example: "3s"),
        Setting(
            "stall_timeout", .one(.time(in: ProxyConfiguration.stallTimeoutRange)), at: \.proxy.stallTimeout,
            needsRestart: true,
            "Give up a transfer after this long without a byte, and try again; 1s to 1h.",
            "A player that has received nothing yet is answered with an error after one and a half times this long.",
            example: "1m"),
        Setting(
            "max_fetches", .one(.number(in: ProxyConfiguration.fetchesRange)), at: \.proxy.maxFetches,
            needsRestart: true,
            "Run at most this many transfers from origins at once; 1 to 4096.",
            "More wait, players first. Paused ones don't count. One client has three quarters at most.", example: "64"),
        Setting(
            "max_fetches_per_host", .one(.number(in: ProxyConfiguration.fetchesRange)), at: \.proxy.maxFetchesPerHost,
            needsRestart: true,
            "Run at most this many transfers from one host at once; 1 to 4096.", example: "6"),
        Setting(
            "web_origins", .list(of: .webOrigin, flag: "web-origin"), at: \.proxy.webOrigins, standard: "none",
            "Let web pages of this origin, such as https://player.example, read all that the proxy serves, and learn what is cached.",
            "Pages of other sites may read media, playlists, subtitles and keys of public origins, and nothing else.",
            example: "[https://player.example]"),
        Setting(
            "secret_parameters", .list(of: .parameterPattern, flag: "secret-parameter"), at: \.proxy.secretParameters,
            standard: "none besides the built-in ones",
            "Treat this query parameter as a secret: show *** for its value in logs and listings.",
            """
            `*` stands for any run of characters. Names such as `token`, `sig` and `*password*` are secrets already; \
            docs/guide/security.md lists them.
            """, example: "[viewer, x-id-*]"),
        Setting(
            "threads", .optional(.number(in: 1...256)), at: \.proxy.threads, standard: "one for each core",
            needsRestart: true,
            "Run this many event loops, each in a thread of its own; 1 to 256.", example: "4"),
        Setting(
            "ca_file", .optional(.path(.file)), at: \.proxy.certificateFile, standard: "the system's",
            needsRestart: true,
            "Trust the certificates in this PEM file instead of the system's.",
            "In the configuration file the path must be absolute or begin with `~/`.",
            example: "/etc/ssl/certs/ca-certificates.crt"),
        Setting(
            "log_level", .one(.logLevel), at: \.logLevel,
            "Log messages of this level and above: trace, debug, info, notice, warning, error or critical.",
            "The log goes to standard error.", example: "info"),
        Setting(
            "access_log", .optional(.output), at: \.proxy.accessLog, standard: "no log",
            "Write a line for each request to this file; - for standard output.",
            """
            A line says who requested what, what was sent, and how much of it came from the cache. SIGHUP reopens the \
            file, as logrotate needs it. In the configuration file the path must be absolute or begin with `~/`.
            """, example: "~/reelcache-access.log"),
        Setting(
            "access_log_format", .one(.accessLogFormat), at: \.proxy.accessLogFormat,
            "Write the lines of the access log as objects of JSON, or as web servers do: json or combined.",
            """
            `combined` is the format of Apache httpd, which most programs for logs read. What the cache knows besides \
            stands at the end of each line; docs/operators/monitoring.md lists it.
            """, example: "combined"),
        Setting(
            "player", .player, at: \.player, standard: "mpv, vlc or ffplay, the first that is installed",
            command: "play",
            "Open URLs with this player: the name or path of a program.",
            """
            In the file it may also be a list: the program and its arguments. Only `reelcache play` uses this setting.
            """, example: "[mpv, --fs]"),
        Setting(
            "parents", .list(of: .parent, flag: "parent"), at: \.proxy.parents, standard: "none",
            "Ask this other reelcache before the origin: http://HOST:PORT.",
            """
            With several parents, each resource has one of them, so that together they hold each resource once. A parent \
            that does not answer is passed over for some seconds: the next one is asked, and at last the origin, also in the \
            middle of a response. A parent needs `any_origin: true`, or mounts of what it is asked for, and its own \
            address policy applies to origins. A rule can name other parents, or none.
            """, example: "[http://10.0.0.5:7335, http://10.0.0.6:7335]"),
        Setting(
            "upstream_proxy", .optional(.outgoingProxy), at: \.proxy.upstreamProxy, standard: "none",
            "Reach origins through this proxy: http://[USER:PASSWORD@]HOST:PORT, or socks5h:// and the same.",
            """
            The proxy looks up the names of origins and connects to them, so reelcache cannot check their addresses: let \
            the proxy refuse those of your network. URLs with a private address are still refused unless `allow` names \
            it. Parents are reached directly, and tunnels are refused.
            """, example: "http://proxy.example:3128"),
        Setting(
            "upstream_proxy_except", .list(of: .proxyException), at: \.proxy.upstreamProxyExceptions, standard: "none",
            "Reach this host without the upstream proxy: a name, with all names below it, an address, or a network such as 10.0.0.0/8.",
            "Networks are compared with addresses in URLs; names are not looked up for it.",
            example: "[nas.local, 192.168.0.0/16]"),
        Setting(
            "resolvers", .resolvers, at: \.proxy.resolvers, standard: "none",
            "Find the media behind the pages of some hosts and paths with a program, such as yt-dlp.",
            """
            With a resolver, the URL of a page is the URL of its media: players, `reelcache prefetch` and feeds take it. \
            The program gets the URL and prints where the media is now, as one line or as JSON. When that address \
            expires while the media plays, the program runs again, and the player notices nothing. The media is cached \
            under the page's URL, so that cached bytes play without the program.

            `host` and `path` are those of a rule, and at least one of them is needed. `command` is the program and its \
            arguments, which no shell interprets; `{url}` in an argument stands for the URL, which is otherwise the last \
            argument. `timeout` limits its run: 30s unless it says otherwise, and 5m at most. The first resolver that \
            matches is used. Name the paths of pages alone: the program runs for each URL that matches.

            A program has the rights of the proxy. Only this file can name one; no request can.
            """, example: ResolverKey.example),
        Setting(
            "on_completed", .command, at: \.proxy.onCompleted, standard: "none",
            "Run this program when a download has completed.",
            """
            No shell interprets it. Its environment says what has ended: `DOWNLOAD_URL`, `DOWNLOAD_TITLE` (its name, as \
            lists show it), `DOWNLOAD_ID`, `DOWNLOAD_STATE`, `DOWNLOAD_BYTES`, and, where there are any, \
            `DOWNLOAD_CATEGORY`, `DOWNLOAD_FEED` and `DOWNLOAD_REASON`. With `REELCACHE_CACHE_DIR`, commands of \
            reelcache use this cache: `reelcache export "$DOWNLOAD_URL" -o "/srv/media/$DOWNLOAD_ID.mp4"` in a script.

            Programs run one after the other, as those of `resolvers` do, for 5 minutes at most; downloads don't wait. \
            One that fails is a warning in the log. When the proxy stops, those that wait have half a minute; after a \
            crash, what had yet to run isn't made up for. Only this file can name one; no request can.
            """, example: "[notify-send, \"A download is there\"]"),
        Setting(
            "on_failed", .command, at: \.proxy.onFailed, standard: "none",
            "Run this program when a download has failed for good.",
            "It runs as that of `on_completed`; `DOWNLOAD_REASON` says why.", example: "[/home/me/bin/notify]"),
        Setting(
            "rules", .rules, at: \.proxy.rules, standard: "none",
            "Treat the resources of some hosts and paths differently.",
            """
            A rule is a list of keys. `host` and `path` say which resources it is for; a rule with neither is for all. \
            The other keys are its effects. Each effect is taken from the first rule that matches and names it, so \
            general rules come last.

            `reelcache ls`, `show`, `rm` and the others follow `key` and `ignore_query` too: any URL of a resource names it.
            """, example: RuleKey.exampleOfRules),
    ]

    private static let byKey = Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0) })

    /// The setting of that key.
    package static subscript(_ key: String) -> Setting? { byKey[key] }
}
