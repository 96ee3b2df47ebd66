/// A program that knows where the media of certain URLs is: an entry of the setting `resolvers`. Only the configuration
/// names programs; no request can.
package struct Resolver: Sendable, Equatable {
    /// At least one of them must match; an empty list matches all hosts.
    private let hosts: [HostPattern]
    /// At least one of them must match; an empty list matches all paths.
    private let paths: [Glob]
    /// The program and its arguments. Not a shell's: each element reaches the program as it is.
    package let command: [String]
    /// The longest run, in seconds.
    package let timeout: Double

    /// Stands for the URL in an argument.
    package static let placeholder = "{url}"

    /// - Throws: for a resolver without a program, or one that would run for every URL unintentionally.
    package init(hosts: [HostPattern], paths: [Glob], command: [String], timeout: Double) throws(RuleError) {
        guard !hosts.isEmpty || !paths.isEmpty else {
            throw RuleError(
                "the program would run for every URL; name the hosts or paths of the pages, such as host: video.example",
                key: "host")
        }
        guard let program = command.first, !program.isEmpty else {
            throw RuleError("names no program; write it like [yt-dlp, --get-url]", key: "command")
        }
        guard !program.contains(Self.placeholder) else {
            throw RuleError("{url} cannot name the program; write it as an argument", key: "command")
        }
        guard !command.contains(where: { $0.utf8.contains(0) }) else {
            throw RuleError("contains a null character; remove it", key: "command")
        }
        guard !Self.isScript(command) else {
            throw RuleError(
                "the shell would run what is in the URL; write [sh, -c, 'yt-dlp -g \"$1\"', sh, \"{url}\"]",
                key: "command")
        }
        (self.hosts, self.paths, self.command, self.timeout) = (hosts, paths, command, timeout)
    }

    /// Whether a shell would run the URL: it is part of the text after `-c`, where `$(...)` and `;` have a meaning.
    private static func isScript(_ command: [String]) -> Bool {
        guard let shell = command.firstIndex(where: { shells.contains($0.split(separator: "/").last ?? "") }) else {
            return false
        }
        let arguments = command[shell...].dropFirst()
        // Also -ec and the like.
        guard let flag = arguments.firstIndex(where: { $0.hasPrefix("-") && !$0.hasPrefix("--") && $0.hasSuffix("c") })
        else { return false }
        return arguments[flag...].dropFirst().first { !$0.hasPrefix("-") }?.contains(placeholder) ?? true
    }

    private static let shells: Set<Substring> = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"]

    func matches(_ url: OriginURL) -> Bool {
        (hosts.isEmpty || hosts.contains { $0.matches(url) })
            && (paths.isEmpty || paths.contains { $0.matches(url.path) })
    }

    /// The program and its arguments for a URL, which is the last argument unless the command has a place for it. A
    /// URL begins with `http`, so the program cannot take it for an option.
    package func arguments(for url: OriginURL) -> [String] {
        guard command.contains(where: { $0.contains(Self.placeholder) }) else { return command + [url.absolute] }
        return command.map { $0.replacing(Self.placeholder, with: url.absolute) }
    }

    /// Tells the command from others, also after a restart, without showing it: arguments may be secret.
    var fingerprint: String {
        // FNV-1a
        let hash = command.joined(separator: "\0").utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01b3
        }
        return String(hash, radix: 16)
    }

    /// The program's name, for messages.
    package var name: String { String(command[0].split(separator: "/").last ?? "") }
}
