import CachePolicy
import Reelcache

extension SettingReader<[ResourceRule]> {
    static var rules: Self {
        SettingReader(placeholder: "rule", isFileOnly: true) { value throws(SettingProblems) in
            guard value.origin.isFile else {
                throw value.problem("rules can be set in the configuration file only; write them there")
            }
            return try SettingProblems.collect(
                value.list(form: "rules: [{host: example.org, ttl: 1d}, ...]"), RuleKey.rule)
        } texts: {
            $0.map(RuleKey.text)
        } summary: {
            $0.isEmpty ? "(none)" : "\($0.count) rule\($0.count == 1 ? "" : "s")"
        }
    }
}

/// A key of a rule: a condition, or an effect.
package struct RuleKey: Sendable {
    package let name: String
    /// Whether it says what to do, rather than which resources the rule is for.
    package let isEffect: Bool
    /// A sentence or two in the imperative, without markup.
    package let summary: String
    /// Paragraphs with code between backticks. May be empty.
    package let details: String
    /// A value in YAML.
    package let example: String
    private let read: @Sendable (SettingValue, inout ResourceRule) throws(SettingProblems) -> Void
    /// As it is written; nil if the rule does not have it.
    private let write: @Sendable (ResourceRule) -> String?

    package static let all: [RuleKey] = [
        RuleKey(
            patterns: .hostPattern, "host", at: \.hosts,
            "Apply the rule to these hosts: one pattern, or a list of patterns.",
            """
            `*` stands for any run of characters. A pattern with a port matches that port only. A pattern that begins \
            with `http://` or `https://` matches that scheme only, and its default port unless `:PORT` follows, or \
            `:*` for all ports. Quote a pattern that begins with `*`.
            """, example: "\"*.cdn.example\""),
        RuleKey(
            patterns: .pathPattern, "path", at: \.paths,
            "Apply the rule to these paths: one pattern, or a list of patterns.",
            "The pattern is compared with the path without its query. `*` stands for any run of characters, `/` included.",
            example: "[/vod/*, \"*.mp4\"]"),
        RuleKey(
            "bypass", .one(.bool), at: \.bypass,
            "With true, neither store responses nor answer from the cache.", example: "true"),
        RuleKey(
            "ttl", .one(.ttl), at: \.ttl,
            "Treat a response as fresh for this long, whatever its origin says: 90m, 12h, 30d.", example: "30d"),
        RuleKey(
            "ignore_no_store", .one(.bool), at: \.ignoresNoStore,
            "With true, store responses even if the origin says no-store.", example: "true"),
        RuleKey(
            "play_stale", .one(.bool), at: \.playsStale,
            """
            With true, play what is stored while the origin cannot be reached, even if the origin forbids that. With \
            false, do not even play what is pinned or was downloaded.
            """, example: "true"),
        RuleKey(
            "ignore_query", .ignoredQuery, at: \.ignoredQuery,
            "Ignore these query parameters when telling resources apart; true for all of them.",
            "Use it for tokens that expire. `*` stands for any run of characters. The origin still receives all parameters.",
            example: "[token, expires, utm_*]"),
        RuleKey(
            "key", .one(.keyTemplate), at: \.key,
            "Store the resource under this URL, so that several hosts can share it.",
            """
            `{scheme}`, `{host}`, `{path}` and `{query}` stand for the parts of the requested URL, `{query}` for what \
            `ignore_query` leaves of it. Quote a key that begins with `{`.

            No site can replace the media of another: a rule whose key lacks `{host}` must name its hosts, with a \
            domain behind each `*`. A key that begins with `https://` is for https URLs only, one with `http://` for \
            http URLs only, and one with `{scheme}` for both. `{host}` and `{scheme}` stand between slashes, before \
            `{path}` and `{query}`.
            """, example: "https://cdn.example{path}"),
        RuleKey(
            "fill", .one(.fill), at: \.fill,
            "Fetch this much beyond what players request, as the setting of the same name does.", example: "whole"),
        RuleKey(
            "metered", .one(.bool), at: \.isMetered,
            "With true, fetch nothing after the player has left, because every byte costs.",
            """
            Otherwise the transfer continues for as many bytes as were read, 8 MiB at most, so that a player that \
            returns need not wait. `metered` overrides `fill`, and no segments are fetched ahead.
            """, example: "true"),
        RuleKey(
            "ahead_segments", .one(.number(in: ProxyConfiguration.aheadSegmentsRange)), at: \.aheadSegments,
            "Fetch this many segments ahead, as the setting of the same name does.", example: "1"),
        RuleKey(
            "prefetch_next", .one(.bool), at: \.prefetchesNext,
            "Download the next episode, file of a list, or number of a series, as the setting of the same name does.",
            example: "true"),
        RuleKey(
            "ignore_reload", .one(.bool), at: \.ignoresReload,
            "Ignore a player's request to revalidate fresh responses, as the setting of the same name does.",
            example: "true"),
        RuleKey(
            "headers", .headers, at: \.headers,
            "Send these header fields to the origin in place of the player's.",
            """
            They do not follow a redirect to another origin. They may be secrets, so the rule must name its hosts, with \
            a domain behind each `*`; a host without a scheme means `https://` here.
            """, example: "{X-Api-Key: a-secret, User-Agent: reelcache}"),
        RuleKey(
            "cookies", .one(.path(.file)), at: \.cookies,
            "Send the cookies of this file to the origins that it names.",
            """
            It is a cookie file in Netscape's form, as `yt-dlp --cookies` and `curl --cookie-jar` write it, and is \
            read again with the configuration. Cookies that an origin sets are kept without a rule, in memory, for the \
            stream or file whose answer set them. Neither are sent from a shared cache, for pages of other sites, or \
            for clients that use the proxy as an HTTP proxy, which have their own.
            """, example: "/etc/reelcache/cookies.txt"),
        RuleKey(
            "max_height", .one(.number(in: 1...65535)), at: \.maxHeight,
            "Leave pictures of more lines out of HLS and DASH playlists, such as 720.",
            """
            Players choose among the rest, and so do downloads of the best picture; if all have more, the least stays. \
            What is cached already plays on without its origin.
            """, example: "720"),
        RuleKey(
            "max_bitrate", .one(.bitRate), at: \.maxBitrate,
            "Leave renditions of more bits per second out of HLS and DASH playlists, as max_height does.",
            example: "2.5M"),
        RuleKey(
            "pin", .one(.bool), at: \.pin,
            "With true, pin what is stored: when its transfer has ended, or when it is next played.", example: "true"),
        RuleKey(
            "store_pages", .one(.bool), at: \.storesPages,
            "With true, store web pages (text/html) that arrive where media was requested.",
            "Otherwise they are passed on and not stored: most are those of captive portals and logins.",
            example: "true"),
        RuleKey(
            "max_object", .one(.size(atLeast: 0)), at: \.maxObject,
            "Do not store resources larger than this, such as 2GB.", example: "10GB"),
        RuleKey(
            "heuristic", .one(.bool), at: \.heuristic,
            "With true, store answers such as 404 and 301 even if the origin states no lifetime for them.",
            """
            For statuses that are cacheable by default (203, 204, 300, 301, 308, 404, 405, 410, 414, 501), with the \
            lifetime of media whose origin states none. With a stated lifetime, any such answer is stored without a rule.
            """, example: "true"),
        RuleKey(
            "refresh", .one(.refreshTemplate), at: \.refresh,
            "When a player's link expires midway, request the rest at this address.",
            """
            It is the first, lasting address, which redirects to a fresh link. After a 401, 403, 404 or 410 for the rest \
            of a response, the rest comes from there, if it is of the same version; the player notices nothing. \
            `{scheme}`, `{host}`, `{path}` and `{query}` stand for the parts of the player's URL. A rule whose address \
            lacks `{host}` must name its hosts, with a domain behind each `*`.
            """, example: "https://api.example/play{path}"),
        RuleKey(
            "parents", .parents, at: \.parents,
            "Ask these parents before the origin, as the setting of the same name does; an empty list for none.",
            example: "[http://10.0.0.5:7335]"),
    ]

    /// What `rules` has as an example: each key in use.
    static let exampleOfRules = """
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
        - host: "*.far.example"          # over a thin line
          max_height: 720
          max_bitrate: 2.5M
        - host: wiki.example             # /wiki/File:Film.webm is a web page there
          store_pages: true
        - host: thumbnails.example       # half of them do not exist, and players ask again and again
          heuristic: true
        - host: signed.example           # its links expire while a film plays
          ignore_query: [signature, expires]
          refresh: https://api.example/play{path}
        - host: "*.members.example"      # one has to log in: the browser's cookies
          cookies: /etc/reelcache/cookies.txt
        - host: [strict.example, "*.strict.example"]
          ignore_no_store: true
          play_stale: true
        - fill: ahead 64MiB              # for everything that no rule above has a fill for
        """

    // MARK: Rules

    static func rule(_ value: SettingValue) throws(SettingProblems) -> ResourceRule {
        var rule = ResourceRule()
        let members = try value.members(form: "- host: example.org, and below it what to do")
        let keys = try SettingProblems.collect(members) { member throws(SettingProblems) in
            guard let key = all.first(where: { $0.name == member.name }) else {
                throw member.problem(unknown(member.name))
            }
            try key.read(member.value, &rule)
            return key
        }
        guard keys.contains(where: \.isEffect) else {
            throw value.problem("has no effect; add one of \(effects.joined(separator: ", ")), or remove the rule")
        }
        // Each value is valid; they may not be valid together.
        do throws(RuleError) { _ = try Rule(rule) } catch {
            throw members.first { $0.name == error.key }?.problem(error.reason) ?? value.problem(error.reason)
        }
        return rule
    }

    private static let effects = all.filter(\.isEffect).map(\.name)

    private static func unknown(_ name: String) -> String {
        let names = all.map(\.name)
        let guess = EditDistance.nearest(to: name.lowercased().replacing("-", with: "_"), in: names)
        return "is not a key of a rule; "
            + (guess.map { "did you mean \($0)?" } ?? "the keys are \(names.joined(separator: ", "))")
    }

    /// A rule on one line.
    static func text(_ rule: ResourceRule) -> String {
        "{\(all.compactMap { $0.write(rule) }.joined(separator: ", "))}"
    }

    // MARK: Making keys

    /// An effect.
    private init<Value>(
        _ name: String, _ reader: SettingReader<Value>, at path: WritableKeyPath<ResourceRule, Value?> & Sendable,
        _ summary: String, _ details: String = "", example: String
    ) {
        (self.name, self.summary, self.details, self.example, isEffect) = (name, summary, details, example, true)
        read = { value, rule throws(SettingProblems) in rule[keyPath: path] = try reader.read(value) }
        write = { rule in rule[keyPath: path].map { "\(name): \(reader.texts($0).joined(separator: ", "))" } }
    }

    /// A condition: one pattern, or a list of them.
    private init(
        patterns kind: SettingKind<String>, _ name: String, at path: WritableKeyPath<ResourceRule, [String]> & Sendable,
        _ summary: String, _ details: String = "", example: String
    ) {
        (self.name, self.summary, self.details, self.example, isEffect) = (name, summary, details, example, false)
        read = { value, rule throws(SettingProblems) in rule[keyPath: path] = try kind.patterns(value) }
        write = { rule in
            let patterns = rule[keyPath: path]
            guard let first = patterns.first else { return nil }
            return "\(name): " + (patterns.count == 1 ? first : "[\(patterns.joined(separator: ", "))]")
        }
    }
}

extension SettingKind<String> {
    /// Reads one pattern, or a list of them.
    func patterns(_ value: SettingValue) throws(SettingProblems) -> [String] {
        guard case .list(let list) = value.content else { return [try SettingReader<String>.one(self).read(value)] }
        guard !list.isEmpty else {
            throw value.problem("is an empty list; write \(value.name): \(placeholder), or remove it to match all")
        }
        return try SettingReader<[String]>.list(of: self).read(value)
    }
}

private extension SettingReader<IgnoredParameters> {
    static var ignoredQuery: Self {
        SettingReader(placeholder: "true|[name, ...]") { value throws(SettingProblems) in
            switch value.content {
            case .text("true"): return .all
            case .text("false"): return .nothing
            case .list: return .parameters(try SettingReader<[String]>.list(of: .parameterPattern).read(value))
            case .text, .nothing, .mapping:
                throw value.problem(
                    "is neither true nor a list of parameters; write ignore_query: true or ignore_query: [token, utm_*]"
                )
            }
        } texts: {
            switch $0 {
            case .all: ["true"]
            case .nothing: ["false"]
            case .parameters(let names): ["[\(names.joined(separator: ", "))]"]
            }
        }
    }
}

private extension SettingReader<[String]> {
    /// A list of parents, perhaps an empty one.
    static var parents: Self {
        let list = SettingReader<[String]>.list(of: .parent)
        return SettingReader(placeholder: "[http://host:port, ...]") { value throws(SettingProblems) in
            guard case .list = value.content else {
                throw value.problem("is not a list; write parents: [http://10.0.0.5:7335], or parents: [] to ask none")
            }
            return try list.read(value)
        } texts: {
            ["[\($0.joined(separator: ", "))]"]
        }
    }
}

private extension SettingReader<[String: String]> {
    static var headers: Self {
        SettingReader(placeholder: "{Name: value}") { value throws(SettingProblems) in
            var names: Set<String> = []
            let fields = try SettingProblems.collect(value.members(form: "headers: {Referer: https://example.org/}")) {
                member throws(SettingProblems) in
                let text = try member.value.text(form: "\(member.name): VALUE")
                do throws(RuleError) { try ConfiguredField.check(name: member.name, value: text) } catch {
                    throw member.problem(error.reason)
                }
                guard names.insert(member.name.lowercased()).inserted else {
                    throw member.problem("is repeated with other capitals; remove one of them")
                }
                return (member.name, text)
            }
            return Dictionary(uniqueKeysWithValues: fields)
        } texts: {
            // Values may be secrets, and this is logged.
            ["{\($0.keys.sorted().map { "\($0): ..." }.joined(separator: ", "))}"]
        }
    }
}
