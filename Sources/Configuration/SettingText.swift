/// What people read about a setting or a key of a rule: in `--help`, in `config/reelcache.yaml`, in reelcache.yaml(5) and
/// in the guide.
struct SettingText: Sendable {
    /// A sentence or two in the imperative, without markup: `--help` shows them as they are.
    let summary: String
    /// Paragraphs with code between backticks; lines that begin with two spaces are shown as they are. May be empty.
    let details: String
    /// A value other than the default, in YAML.
    let example: String

    init(_ summary: String, _ details: String = "", example: String) {
        (self.summary, self.details, self.example) = (summary, details, example)
    }

    /// - Precondition: the key has an entry.
    static func of(setting key: String) -> SettingText { entry(settings[key], key) }

    /// - Precondition: the key has an entry.
    static func of(ruleKey key: String) -> SettingText { entry(ruleKeys[key], key) }

    private static func entry(_ text: SettingText?, _ key: String) -> SettingText {
        guard let text else { preconditionFailure("SettingText has no entry for \(key)") }
        return text
    }

    // MARK: Settings

    static let settings: [String: SettingText] = [
        "listen": SettingText(
            "Listen on this address: HOST:PORT, [IPV6]:PORT, or :PORT for all addresses.",
            """
            Whoever reaches the proxy can fetch any public URL through it, so it warns when it listens beyond this \
            machine. To serve a network, use `mounts` with `any_origin: false`.
            """, example: "192.168.1.10:7335"),
        "names": SettingText(
            "Answer to this host name, besides the proxy's addresses and localhost.",
            """
            Requests that name any other host are answered with 421, because the page of another site could have its \
            own name resolve to this machine.
            """, example: "[tv.example]"),
        "trusted": SettingText(
            "Believe this balancer about its clients: an IP address, or a network such as 10.0.0.0/24.",
            """
            A balancer or web server in front of the proxy names the client, and the scheme, host and port that it used, \
            in `Forwarded` or in `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`; or in a PROXY header \
            (`proxy_protocol`). From these addresses the proxy uses them for the log, for limits per client and for the \
            addresses in playlists; from all others it ignores them. Reading `/stats` and `/api/v1` then needs a token \
            everywhere, as the balancer's clients may be anywhere.
            """, example: "[10.0.0.5]"),
        "proxy_protocol": SettingText(
            "Expect a header of the PROXY protocol, version 1 or 2, on each connection from a trusted address.",
            """
            Connections from other addresses begin with HTTP as usual. If the balancer runs on this machine, give it an \
            address of its own, so that players and commands of this machine still reach the proxy without it: \
            `source 127.0.0.2` for the server in HAProxy, and `trusted: [127.0.0.2]`. What a request itself states of its \
            client (`Forwarded`, `X-Forwarded-For`) counts only if the header names an address in `trusted`.
            """, example: "true"),
        "drain_time": SettingText(
            "Give running responses this long to end when the proxy is stopped; up to 24h.",
            """
            On SIGTERM, `/healthz` answers 503 `draining` at once, and requests are still answered, until nothing runs or \
            the time is over. A second signal ends it at once.
            """, example: "1h"),
        "max_connections": SettingText(
            "Answer connections beyond this number with 503 and Retry-After.",
            """
            Idle connections are closed first, to make room. Without this setting, connections wait until there is room. \
            If there are files for fewer, connections beyond those are refused, and the log says so.
            """, example: "4000"),
        "max_connections_per_client": SettingText(
            "Answer connections of a client beyond this number with 429 and Retry-After.",
            """
            A client is an IPv4 address, or an IPv6 network of 64 bits; behind a balancer in `trusted`, the one that it \
            names. Connections of a balancer that speaks HTTP serve many clients: there, the limit is for the requests \
            of a client that run at the same time.
            """, example: "100"),
        "max_requests_per_client": SettingText(
            "Answer requests of a client beyond this rate with 429 and Retry-After: 100/s, 600/min or 5000/h.",
            """
            As many may come at once. The connection stays open.
            """, example: "600/min"),
        "cache_dir": SettingText(
            "Use the cache in this directory.",
            """
            The directory is created if it is missing. In the configuration file the path must be absolute or begin with `~/`. One process at a time owns a cache \
            directory.
            """, example: "/srv/reelcache"),
        "max_size": SettingText(
            "Limit the space that the cache takes on the disk; at least 16MB.",
            """
            Space is reserved before it is written, so the cache never exceeds the limit. When it is full, the parts \
            that were read least recently are evicted; pinned resources stay. A film larger than the cache still plays.
            """, example: "100GB"),
        "min_free": SettingText(
            "Keep this much space free on the disk.",
            "The cache then takes less than `max_size` allows.", example: "5GB"),
        "max_short_responses": SettingText(
            "Use this much memory for answers that are not media, such as 404 and redirects; 0 stores none.",
            """
            They are stored for as long as their origin says (`Cache-Control: max-age`, `Expires`), with bodies of up to \
            64 KiB, and forgotten when the proxy ends. They never take the place of media. The rule key `heuristic` \
            stores some of them without a stated lifetime.
            """, example: "16MiB"),
        "max_buffered": SettingText(
            "Use this much memory for bytes that wait for players and origins; at least 4MiB.",
            """
            These are answers that are not stored and whose players read slowly or have paused, bodies of requests, \
            and what is not on the disk yet. Nothing is dropped: the less is left, the less is read ahead of each \
            player, down to 64 KiB. A quarter is set aside for that, and one client has three quarters of the rest at \
            most. What is cached takes nothing of it.
            """, example: "256MiB"),
        "allow": SettingText(
            "Allow fetching from this private origin: a host name, an address, or a network such as 192.168.1.0/24.",
            """
            Public origins need no entry. Everything else is refused with 403, whatever name leads to it: the \
            addresses and networks of this machine, and loopback, private and link-local addresses. Otherwise the \
            proxy would be a way into the network that it runs in.
            """, example: "[nas.local, 192.168.1.0/24]"),
        "mounts": SettingText(
            "Serve a part of an origin below a path of the proxy: /tv/=https://origin.example/vod/. Both end with /.",
            """
            In this example, `/tv/a.mp4` is `https://origin.example/vod/a.mp4`. Through a mount, requests of all \
            methods reach the origin; only GET and HEAD are cached. For whom the cache stores may differ from one \
            mount to the next: write `/tv/: {origin: https://origin.example/vod/, cache: private}` (see `cache`), or \
            `/tv/=https://origin.example/vod/ private` in a flag.
            """, example: "{/tv/: https://origin.example/vod/}"),
        "any_origin": SettingText(
            """
            Let players name any origin, by /https/HOST/PATH or by using the proxy as their http_proxy. Otherwise, \
            serve mounts only.
            """,
            "Set this to `false` where the proxy listens beyond this machine.", example: "false"),
        "cache": SettingText(
            "Store responses for many users (shared), or for one user or some who trust each other (private).",
            """
            A shared cache passes on what an origin means for one user, and does not store it: `private`, and what a \
            client's `Authorization` opened, unless the origin allows it (`public`, `s-maxage`, `must-revalidate`). It \
            obeys `s-maxage`, `proxy-revalidate` and the `targeted_fields`. A mount may have its own `cache`; it holds \
            for the mount's URLs in whatever form they are requested. What a private cache has stored for one user \
            answers nobody once the cache is shared.
            """, example: "shared"),
        "default_ttl": SettingText(
            "Keep responses fresh for this long if their origin states no lifetime.",
            """
            If the origin states when the file was last changed, it is fresh for a tenth of the time since then (at most \
            a week), but no less than this. Playlists and feeds without a lifetime are validated on every request. The \
            key `ttl` of a rule takes precedence.
            """, example: "1h"),
        "targeted_fields": SettingText(
            "Obey this field in place of Cache-Control and Expires, in a shared cache. Of several, the first that is valid.",
            """
            Such fields (RFC 9213) are for caches between origins and users; players get them and `Cache-Control` as \
            the origin sent them. Their names end with `-Cache-Control`. `[]` for none.
            """, example: "[Edge-Cache-Control, CDN-Cache-Control]"),
        "tunnel": SettingText(
            """
            Let players that use the proxy as their http_proxy reach https origins with CONNECT. Nothing in a tunnel \
            is cached.
            """,
            "Use `/https/HOST/PATH` for what should be cached. A tunnel leads to the same addresses that may be fetched from.",
            example: "true"),
        "tunnel_ports": SettingText("Let CONNECT lead to this port; 1 to 65535.", example: "[443, 8443]"),
        "max_body": SettingText(
            "Limit the body of a request through a mount. A larger one is answered with 413.",
            """
            Bodies stream through the proxy and take no room in the cache. If the length is announced and too large, \
            nothing is sent to the origin.
            """, example: "100MB"),
        "offline": SettingText(
            "Never contact an origin: play what is cached, and answer 504 for the rest.",
            "Cached media plays even if its origin requires that it be revalidated.", example: "true"),
        "play_pinned": SettingText(
            """
            Play pinned and downloaded media while its origin cannot be reached, even if the origin forbids that \
            (no-cache, must-revalidate).
            """,
            "With `false`, the origin's directives apply. The key `play_stale` of a rule takes precedence.",
            example: "false"),
        "fill": SettingText(
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
        "ahead_segments": SettingText(
            "Fetch this many segments of an HLS or DASH stream after the one being played; 0 to 20.",
            """
            They are then cached before the player asks for them. After a seek or a switch to another rendition, the \
            proxy continues from the new place at once. Nothing is fetched ahead with 0, with `fill: read`, or where a \
            rule says `metered`.
            """, example: "5"),
        "prefetch_next": SettingText(
            "Download the next episode, file of a list, or number of a series when most of one was played.",
            """
            The download begins when a player has read three quarters of an item; it has low priority and is not \
            pinned. The next item is the next newer one of a podcast or the next entry of an M3U, PLS or XSPF list, if \
            the feed or list was read through the proxy or is a subscribed feed, and otherwise the next number: \
            `show-s01e02.mp4` after `show-s01e01.mp4`, if its origin has it. Nothing is downloaded where a rule says \
            `metered`, or for pages of other sites that `web_origins` does not name. `reelcache play --prefetch-next` \
            does it for one item, or for the items of one feed or list.
            """, example: "true"),
        "ignore_reload": SettingText(
            "Answer from the cache while a response is fresh, even if the player asks to revalidate it (no-cache, max-age=0).",
            """
            Some players send `no-cache` with every request. With `false` they get what they ask for. The default is \
            to ignore the request for segments that a playlist names, because their content does not change.
            """, example: "true"),
        "max_downloads": SettingText(
            "Run at most this many downloads at once; 1 to 64.",
            "`reelcache downloads set` changes it until the proxy ends.", example: "1"),
        "download_rate": SettingText(
            "Limit all downloads together to this many bytes per second, such as 2MB; none for no limit.",
            "What players read is not limited. `reelcache downloads set` changes the limit until the proxy ends.",
            example: "2MB"),
        "schedule": SettingText(
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
        "download_cap": SettingText(
            "Let downloads fetch at most this much from origins in a day or a month of local time: 2GB/day, 40GB/month.",
            """
            Downloads then wait until the day or month has ended, and continue by themselves. What was cached before, \
            and what players fetch, does not count. Downloads ordered with `--at-once` do not wait, but are counted.
            """, example: "[2GB/day, 40GB/month]"),
        "linger": SettingText(
            "Keep a transfer for this long after its last reader has left; 0s to 10m.",
            "Players disconnect and connect again when they seek.", example: "30s"),
        "connect_timeout": SettingText(
            "Give up connecting to an origin after this time; 1s to 10m.",
            "It covers looking up the name, connecting, and the TLS handshake.", example: "3s"),
        "stall_timeout": SettingText(
            "Give up a transfer after this long without a byte, and try again; 1s to 1h.",
            "A player that has received nothing yet is answered with an error after one and a half times this long.",
            example: "1m"),
        "max_fetches": SettingText(
            "Run at most this many transfers from origins at once; 1 to 4096.",
            "More wait, players first. Paused ones don't count. One client has three quarters at most.", example: "64"),
        "max_fetches_per_host": SettingText(
            "Run at most this many transfers from one host at once; 1 to 4096.", example: "6"),
        "web_origins": SettingText(
            "Let web pages of this origin, such as https://player.example, read all that the proxy serves, and learn what is cached.",
            "Pages of other sites may read media, playlists, subtitles and keys of public origins, and nothing else.",
            example: "[https://player.example]"),
        "secret_parameters": SettingText(
            "Treat this query parameter as a secret: show *** for its value in logs and listings.",
            """
            `*` stands for any run of characters. Names such as `token`, `sig` and `*password*` are secrets already; \
            docs/guide/security.md lists them.
            """, example: "[viewer, x-id-*]"),
        "parents": SettingText(
            "Ask this other reelcache before the origin: http://HOST:PORT.",
            """
            With several parents, each resource has one of them, so that together they hold each resource once. A parent \
            that does not answer is passed over for some seconds: the next one is asked, and at last the origin, also in the \
            middle of a response. A parent needs `any_origin: true`, or mounts of what it is asked for, and its own \
            address policy applies to origins. A rule can name other parents, or none.
            """, example: "[http://10.0.0.5:7335, http://10.0.0.6:7335]"),
        "upstream_proxy": SettingText(
            "Reach origins through this proxy: http://[USER:PASSWORD@]HOST:PORT, or socks5h:// and the same.",
            """
            The proxy looks up the names of origins and connects to them, so reelcache cannot check their addresses: let \
            the proxy refuse those of your network. URLs with a private address are still refused unless `allow` names \
            it. Parents are reached directly, and tunnels are refused.
            """, example: "http://proxy.example:3128"),
        "upstream_proxy_except": SettingText(
            "Reach this host without the upstream proxy: a name, with all names below it, an address, or a network such as 10.0.0.0/8.",
            "Networks are compared with addresses in URLs; names are not looked up for it.",
            example: "[nas.local, 192.168.0.0/16]"),
        "threads": SettingText("Run this many event loops, each in a thread of its own; 1 to 256.", example: "4"),
        "ca_file": SettingText(
            "Trust the certificates in this PEM file instead of the system's.",
            "In the configuration file the path must be absolute or begin with `~/`.",
            example: "/etc/ssl/certs/ca-certificates.crt"),
        "log_level": SettingText(
            "Log messages of this level and above: trace, debug, info, notice, warning, error or critical.",
            "The log goes to standard error.", example: "info"),
        "access_log": SettingText(
            "Write a line for each request to this file; - for standard output.",
            """
            A line says who requested what, what was sent, and how much of it came from the cache. SIGHUP reopens the \
            file, as logrotate needs it. In the configuration file the path must be absolute or begin with `~/`.
            """, example: "~/reelcache-access.log"),
        "access_log_format": SettingText(
            "Write the lines of the access log as objects of JSON, or as web servers do: json or combined.",
            """
            `combined` is the format of Apache httpd, which most programs for logs read. What the cache knows besides \
            stands at the end of each line; docs/guide/http-api.md lists it.
            """, example: "combined"),
        "player": SettingText(
            "Open URLs with this player: the name or path of a program.",
            """
            In the file it may also be a list: the program and its arguments. Only `reelcache play` uses this setting.
            """, example: "[mpv, --fs]"),
        "resolvers": SettingText(
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
            """, example: exampleResolvers),
        "rules": SettingText(
            "Treat the resources of some hosts and paths differently.",
            """
            A rule is a list of keys. `host` and `path` say which resources it is for; a rule with neither is for all. \
            The other keys are its effects. Each effect is taken from the first rule that matches and names it, so \
            general rules come last.

            `reelcache ls`, `show`, `rm` and the others follow `key` and `ignore_query` too: any URL of a resource names it.
            """, example: exampleRules),
    ]

    private static let exampleResolvers = """
        - host: [youtube.com, "*.youtube.com"]
          path: [/watch, "/shorts/*", "/live/*"]
          command: [yt-dlp, --no-playlist, --format, "best[protocol^=http]/best", --print, "%(.{url,http_headers,title,ext})j"]
          timeout: 60s
        """

    private static let exampleRules = """
        - host: "*.cdn.example"          # edge1.cdn.example and edge2.cdn.example have the same films
          path: [/vod/*, "*.mp4"]
          key: https://cdn.example{path}
          ignore_query: [token, expires, utm_*]
          ttl: 30d
          fill: whole
          max_object: 10GB
        - host: http://nas.local:8080    # without http://, the header fields would go over https only
          headers: {X-Api-Key: a-secret, User-Agent: reelcache}
          pin: true
        - path: /live/*
          bypass: true
        - host: "*.video.example"        # another reelcache is asked first
          parents: [http://10.0.0.5:7335]
        - host: roaming.example
          metered: true
        - host: podcasts.example
          prefetch_next: true
        - host: tv.example               # long segments, and a player that revalidates all of them
          ahead_segments: 1
          ignore_reload: true
        - host: wiki.example             # /wiki/File:Film.webm is a web page there
          store_pages: true
        - host: thumbnails.example       # half of them do not exist, and players ask again and again
          heuristic: true
        - host: signed.example           # its links expire while a film plays
          ignore_query: [signature, expires]
          refresh: https://api.example/play{path}
        - host: [strict.example, "*.strict.example"]
          ignore_no_store: true
          play_stale: true
        - fill: ahead 64MiB              # for everything that no rule above has a fill for
        """

    // MARK: Keys of rules

    static let ruleKeys: [String: SettingText] = [
        "host": SettingText(
            "Apply the rule to these hosts: one pattern, or a list of patterns.",
            """
            `*` stands for any run of characters. A pattern with a port matches that port only. A pattern that begins \
            with `http://` or `https://` matches that scheme only, and its default port unless `:PORT` follows, or \
            `:*` for all ports. Quote a pattern that begins with `*`.
            """, example: "\"*.cdn.example\""),
        "path": SettingText(
            "Apply the rule to these paths: one pattern, or a list of patterns.",
            "The pattern is compared with the path without its query. `*` stands for any run of characters, `/` included.",
            example: "[/vod/*, \"*.mp4\"]"),
        "bypass": SettingText(
            "With true, neither store responses nor answer from the cache.", example: "true"),
        "ttl": SettingText(
            "Treat a response as fresh for this long, whatever its origin says: 90m, 12h, 30d.", example: "30d"),
        "ignore_no_store": SettingText(
            "With true, store responses even if the origin says no-store.", example: "true"),
        "play_stale": SettingText(
            """
            With true, play what is stored while the origin cannot be reached, even if the origin forbids that. With \
            false, do not even play what is pinned or was downloaded.
            """, example: "true"),
        "ignore_query": SettingText(
            "Ignore these query parameters when telling resources apart; true for all of them.",
            "Use it for tokens that expire. `*` stands for any run of characters. The origin still receives all parameters.",
            example: "[token, expires, utm_*]"),
        "key": SettingText(
            "Store the resource under this URL, so that several hosts can share it.",
            """
            `{scheme}`, `{host}`, `{path}` and `{query}` stand for the parts of the requested URL, `{query}` for what \
            `ignore_query` leaves of it. Quote a key that begins with `{`.

            No site can replace the media of another: a rule whose key lacks `{host}` must name its hosts, with a \
            domain behind each `*`. A key that begins with `https://` is for https URLs only, one with `http://` for \
            http URLs only, and one with `{scheme}` for both. `{host}` and `{scheme}` stand between slashes, before \
            `{path}` and `{query}`.
            """, example: "https://cdn.example{path}"),
        "fill": SettingText(
            "Fetch this much beyond what players request, as the setting of the same name does.", example: "whole"),
        "metered": SettingText(
            "With true, fetch nothing after the player has left, because every byte costs.",
            """
            Otherwise the transfer continues for as many bytes as were read, 8 MiB at most, so that a player that \
            returns need not wait. `metered` overrides `fill`, and no segments are fetched ahead.
            """, example: "true"),
        "ahead_segments": SettingText(
            "Fetch this many segments ahead, as the setting of the same name does.", example: "1"),
        "prefetch_next": SettingText(
            "Download the next episode, file of a list, or number of a series, as the setting of the same name does.",
            example: "true"),
        "ignore_reload": SettingText(
            "Ignore a player's request to revalidate fresh responses, as the setting of the same name does.",
            example: "true"),
        "headers": SettingText(
            "Send these header fields to the origin in place of the player's.",
            """
            They do not follow a redirect to another origin. They may be secrets, so the rule must name its hosts, with \
            a domain behind each `*`; a host without a scheme means `https://` here.
            """, example: "{X-Api-Key: a-secret, User-Agent: reelcache}"),
        "pin": SettingText(
            "With true, pin what is stored: when its transfer has ended, or when it is next played.", example: "true"),
        "store_pages": SettingText(
            "With true, store web pages (text/html) that arrive where media was requested.",
            "Otherwise they are passed on and not stored: most are those of captive portals and logins.",
            example: "true"),
        "max_object": SettingText(
            "Do not store resources larger than this, such as 2GB.", example: "10GB"),
        "parents": SettingText(
            "Ask these parents before the origin, as the setting of the same name does; an empty list for none.",
            example: "[http://10.0.0.5:7335]"),
        "heuristic": SettingText(
            "With true, store answers such as 404 and 301 even if the origin states no lifetime for them.",
            """
            For statuses that are cacheable by default (203, 204, 300, 301, 308, 404, 405, 410, 414, 501), with the \
            lifetime of media whose origin states none. With a stated lifetime, any such answer is stored without a rule.
            """, example: "true"),
        "refresh": SettingText(
            "When a player's link expires midway, request the rest at this address.",
            """
            It is the first, lasting address, which redirects to a fresh link. After a 401, 403, 404 or 410 for the rest \
            of a response, the rest comes from there, if it is of the same version; the player notices nothing. \
            `{scheme}`, `{host}`, `{path}` and `{query}` stand for the parts of the player's URL. A rule whose address \
            lacks `{host}` must name its hosts, with a domain behind each `*`.
            """, example: "https://api.example/play{path}"),
    ]
}
