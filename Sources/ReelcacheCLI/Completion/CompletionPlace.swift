/// The place of the cursor in a command line, and the values that fit there.
///
/// | term | meaning |
/// |---|---|
/// | candidate | a value that the word at the cursor can become |
/// | lead | the part of that word before the value: `--config=` |
/// | typed | the part of the value before the cursor |
package struct CompletionPlace: Sendable {
    /// Where candidates come from.
    package enum Source: Sendable, Equatable {
        case candidates([Candidate])
        case files, directories
        /// Names that the program can look up, of this kind.
        case known(String)
    }

    package let lead: String
    package let typed: String
    package let source: Source
    /// The names of the command and of its subcommand.
    package let command: [String]
    /// The values of the options before the cursor, under each of their names.
    package let options: [String: [String]]
    /// The words before the cursor that are neither options nor their values.
    package let positionals: [String]

    /// - Parameters:
    ///   - words: the words between the program and the word at the cursor.
    ///   - current: the word at the cursor, up to the cursor.
    package init(in tree: CommandTree, words: [String], current: String) {
        var walk = CommandWalk(tree)
        for word in words { walk.take(word) }
        (command, options, positionals) = (walk.path, walk.options, walk.positionals)
        if let option = walk.pending {
            (lead, typed, source) = ("", current, Self.source(option))
        } else if let equals = current.firstIndex(of: "="), current.hasPrefix("--"), !walk.isTerminated,
            let option = walk.option(String(current[..<equals]))
        {
            let value = current.index(after: equals)
            (lead, typed, source) = (String(current[..<value]), String(current[value...]), Self.source(option))
        } else if current.hasPrefix("-"), !walk.isTerminated {
            (lead, typed, source) = ("", current, .candidates(walk.flags))
        } else {
            (lead, typed) = ("", current)
            let subcommands = walk.subcommands
            source =
                subcommands.isEmpty ? walk.positional.map(Self.source) ?? .candidates([]) : .candidates(subcommands)
        }
    }

    private static func source(_ entry: ArgumentEntry) -> Source {
        switch entry.values {
        case .nothing: .candidates([])
        case .list(let values): .candidates(values.map { Candidate($0) })
        case .files: .files
        case .directories: .directories
        case .known(let kind): .known(kind)
        }
    }

    /// The candidates that begin with what is typed and are not in the line yet.
    /// - Parameter names: candidates of the kind that `source` names.
    package func matches(_ names: [Candidate] = []) -> [Candidate] {
        let candidates = if case .candidates(let candidates) = source { candidates } else { names }
        return candidates.filter { $0.value.hasPrefix(typed) && !positionals.contains($0.value) }
            .map { Candidate(lead + $0.value, $0.note) }
    }
}

/// A value that the word at the cursor can become.
package struct Candidate: Sendable, Equatable {
    package let value: String
    /// A description in one line.
    package let note: String?

    package init(_ value: String, _ note: String? = nil) { (self.value, self.note) = (value, note) }
}

/// Reads the words before the cursor as the parser would, but makes the best of mistakes instead of reporting them.
private struct CommandWalk {
    private let root: CommandTree
    private var command: CommandTree
    private(set) var path: [String] = []
    /// The option whose value the next word is.
    private(set) var pending: ArgumentEntry?
    /// Whether a `--` was read.
    private(set) var isTerminated = false
    private(set) var positionals: [String] = []
    private(set) var options: [String: [String]] = [:]
    private var used = Set<String>()

    init(_ root: CommandTree) { (self.root, command) = (root, root) }

    mutating func take(_ word: String) {
        if let option = pending {
            note(option, value: word)
            pending = nil
        } else if isTerminated {
            positionals.append(word)
        } else if word == "--" {
            isTerminated = true
        } else if word.hasPrefix("-"), word != "-" {
            takeOption(word)
        } else if positionals.isEmpty, let next = command[word] {
            (command, path) = (next, path + [word])
        } else {
            positionals.append(word)
        }
    }

    private mutating func takeOption(_ word: String) {
        let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
        // If one word has several short options, only the last can take a value: `-qo FILE`.
        let name = word.hasPrefix("--") ? parts[0] : "-" + String(word.suffix(1))
        used.insert(name)
        guard let option = option(name) else { return }
        if word.hasPrefix("--"), parts.count == 2 { note(option, value: parts[1]) } else { pending = option }
    }

    private mutating func note(_ option: ArgumentEntry, value: String) {
        for name in option.names { options[name, default: []].append(value) }
    }

    /// The option of that name that takes a value.
    func option(_ name: String) -> ArgumentEntry? {
        arguments.first { $0.kind == .option && $0.names.contains(name) }
    }

    /// The arguments of the command; before it, also the options of every command.
    private var arguments: [ArgumentEntry] {
        guard path.isEmpty else { return command.ownArguments }
        let shared = CommandWords.shared.compactMap { name in
            command.subcommands.lazy.compactMap { $0.ownArguments.first { $0.names.contains(name) } }.first
        }
        return command.ownArguments + shared
    }

    /// The options and flags that can still be added.
    var flags: [Candidate] {
        arguments.filter { entry in
            entry.isShown && entry.kind != .positional && (entry.isRepeating || used.isDisjoint(with: entry.names))
        }.flatMap { entry in entry.names.map { Candidate($0, entry.summary) } }
    }

    /// The subcommands to choose from; none once one is chosen.
    var subcommands: [Candidate] {
        guard let place = chosen, !isTerminated else { return [] }
        return place.subcommands.filter { $0.isShown && $0.name != "help" || place.name == root.name && $0.isShown }
            .map { Candidate($0.name, $0.summary) }
    }

    /// The command whose subcommands can follow. `help` takes the names of all commands.
    private var chosen: CommandTree? {
        guard path == ["help"] else { return positionals.isEmpty ? command : nil }
        var place: CommandTree? = root
        for word in positionals { place = place?[word] }
        return place
    }

    /// The argument that the next word is for, unless that is an option.
    var positional: ArgumentEntry? {
        let entries = command.ownArguments.filter { $0.kind == .positional }
        if isTerminated, let entry = entries.first(where: \.isBehindTerminator) { return entry }
        let places = entries.filter { !$0.isBehindTerminator }
        if positionals.count < places.count { return places[positionals.count] }
        return places.last.flatMap { $0.isRepeating ? $0 : nil }
    }
}
