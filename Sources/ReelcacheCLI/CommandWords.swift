import ArgumentParser

/// The words of a command line, before the parser reads them.
struct CommandWords {
    private(set) var words: [String]

    /// Options of every command, which may stand before it, too.
    private static let shared = ["--cache-dir", "--config"]

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
                // What a default subcommand makes of it, its parser knows; `help` is a command of the parser.
                guard command.configuration.defaultSubcommand == nil, word != "help" else { return nil }
                let shown = known.filter { $0.configuration.shouldDisplay }
                return Self.problem(word, after: path, among: shown.map { Self.name($0) })
            }
            path.append(word)
            command = next
        }
        return nil
    }

    private static func problem(_ word: String, after path: [String], among names: [String]) -> String {
        let near = names.map { (distance: distance(word, $0), name: $0) }.min { $0.distance < $1.distance }
        let command = (["reelcache"] + path).joined(separator: " ")
        guard let near, near.distance <= max(1, word.count / 3) else {
            return "there is no command '\(word)'; see \(command) --help"
        }
        return "there is no command '\(word)'; did you mean \(command) \(near.name)?"
    }

    private static func name(_ command: any ParsableCommand.Type) -> String { command._commandName }

    /// How many letters have to be added, left out or replaced to make one word of another (Levenshtein).
    static func distance(_ one: String, _ other: String) -> Int {
        var row = Array(0...other.count)
        for (index, letter) in one.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for (place, second) in other.enumerated() {
                let above = row[place + 1]
                row[place + 1] = min(above + 1, row[place] + 1, diagonal + (letter == second ? 0 : 1))
                diagonal = above
            }
        }
        return row[other.count]
    }
}
