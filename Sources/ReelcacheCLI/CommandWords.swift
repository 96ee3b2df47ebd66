import ArgumentParser
import Configuration

/// The words of a command line, before the parser reads them.
struct CommandWords {
    private(set) var words: [String]

    /// Options of every command, which may stand before it, too.
    static let shared = ["--cache-dir", "--config"]

    /// Moves options that stand before the command behind it.
    init(_ words: [String]) {
        var rest = words[...], options: [String] = []
        while let word = rest.first, let name = Self.shared.first(where: { word == $0 || word.hasPrefix($0 + "=") }) {
            let count = word == name ? 2 : 1
            options += rest.prefix(count)
            rest = rest.dropFirst(count)
        }
        let end = rest.firstIndex(of: "--") ?? rest.endIndex
        self.words = rest.isEmpty ? words : rest[..<end] + options + rest[end...]
    }

    /// What is wrong with the names of commands; nil if nothing is.
    func problem(in root: any ParsableCommand.Type) -> String? {
        var words = words[...]
        if words.first == "help" { words = words.dropFirst() }
        var (command, path) = (root, [String]())
        while let word = words.popFirst(), !word.hasPrefix("-") {
            let known = command.configuration.subcommands
            guard !known.isEmpty else { return nil }
            guard let next = known.first(where: { Self.name($0) == word }) else {
                // `help` is a command of the parser. No default subcommand takes words.
                guard word != "help" else { return nil }
                let shown = known.filter { $0.configuration.shouldDisplay }
                return Self.problem(word, after: path, among: shown.map { Self.name($0) })
            }
            path.append(word)
            command = next
        }
        return nil
    }

    private static func problem(_ word: String, after path: [String], among names: [String]) -> String {
        let command = (["reelcache"] + path).joined(separator: " ")
        guard let near = EditDistance.nearest(to: word, in: names) else {
            return "there is no command '\(word)'; see \(command) --help"
        }
        return "there is no command '\(word)'; did you mean \(command) \(near)?"
    }

    private static func name(_ command: any ParsableCommand.Type) -> String { command._commandName }
}
