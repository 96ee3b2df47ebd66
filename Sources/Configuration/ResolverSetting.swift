import CachePolicy
import Reelcache

extension SettingReader<[MediaResolver]> {
    /// In the file only: whoever can make a request must not be able to name a program.
    static var resolvers: Self {
        SettingReader(placeholder: "resolver", isFileOnly: true) { value throws(SettingProblems) in
            guard value.origin.isFile else {
                throw value.problem("resolvers can be set in the configuration file only; write them there")
            }
            return try SettingProblems.collect(
                value.list(form: "resolvers: [{host: video.example, command: [yt-dlp, --get-url]}, ...]"),
                ResolverKey.resolver)
        } texts: {
            $0.map(ResolverKey.text)
        } summary: {
            $0.isEmpty ? "(none)" : "\($0.count) resolver\($0.count == 1 ? "" : "s")"
        }
    }
}

extension SettingReader<[String]> {
    /// A program and its arguments; in the file only, as for resolvers.
    static var command: Self {
        SettingReader(placeholder: "command", isFileOnly: true) { value throws(SettingProblems) in
            guard value.origin.isFile else {
                throw value.problem("programs can be named in the configuration file only; write it there")
            }
            let form = "\(value.name): [notify-send, finished]", words = try ResolverKey.words(value, form: form)
            guard words.first != "" else { throw value.problem("names no program; write \(form)") }
            return words
        } texts: {
            // Arguments may be secrets, and this is logged.
            $0.first.map { ["[\($0), ...]"] } ?? []
        }
    }
}

/// A key of a resolver.
enum ResolverKey: String, CaseIterable {
    case host, path, command, timeout

    /// What `resolvers` has as an example.
    static let example = """
        - host: [youtube.com, "*.youtube.com"]
          path: [/watch, "/shorts/*", "/live/*"]
          command: [yt-dlp, --no-playlist, --format, "best[protocol^=http]/best", --print, "%(.{url,http_headers,title,ext})j"]
          timeout: 60s
        """

    private static let list = allCases.map(\.rawValue).joined(separator: ", ")
    private static let commandForm = "command: [yt-dlp, --get-url]"

    static func resolver(_ value: SettingValue) throws(SettingProblems) -> MediaResolver {
        var resolver = MediaResolver(command: [])
        let members = try value.members(form: "- host: video.example, and below it the command")
        _ = try SettingProblems.collect(members) { member throws(SettingProblems) in
            guard let key = ResolverKey(rawValue: member.name) else {
                throw member.problem("is not a key of a resolver; the keys are \(list)")
            }
            try key.read(member.value, &resolver)
        }
        guard members.contains(where: { $0.name == command.rawValue }) else {
            throw value.problem("has no command; write \(commandForm)")
        }
        // Each value is valid; they may not be valid together.
        do throws(RuleError) { _ = try Resolver(resolver) } catch {
            throw members.first { $0.name == error.key }?.problem(error.reason) ?? value.problem(error.reason)
        }
        return resolver
    }

    private func read(_ value: SettingValue, _ resolver: inout MediaResolver) throws(SettingProblems) {
        switch self {
        case .host: resolver.hosts = try SettingKind.hostPattern.patterns(value)
        case .path: resolver.paths = try SettingKind.pathPattern.patterns(value)
        case .command:
            resolver.command = try Self.words(value, form: Self.commandForm)
        case .timeout:
            resolver.timeout = try SettingReader<Duration>.one(.time(in: MediaResolver.timeoutRange), form: "30s")
                .read(value)
        }
    }

    /// The words of a command.
    static func words(_ value: SettingValue, form: String) throws(SettingProblems) -> [String] {
        if case .text = value.content {
            throw value.problem("is a list of the program and its arguments, not a line for a shell; write \(form)")
        }
        return try SettingProblems.collect(value.list(form: form)) {
            word throws(SettingProblems) in try word.element()
        }
    }

    /// A resolver on one line. Arguments may be secrets, and this is logged.
    static func text(_ resolver: MediaResolver) -> String {
        let patterns = [(host, resolver.hosts), (path, resolver.paths)].filter { !$0.1.isEmpty }
            .map { "\($0.0.rawValue): [\($0.1.joined(separator: ", "))]" }
        let program = resolver.command.first ?? ""
        return "{\((patterns + ["command: [\(program), ...]"]).joined(separator: ", "))}"
    }
}
