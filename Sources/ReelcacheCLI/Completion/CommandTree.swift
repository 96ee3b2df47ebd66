import Foundation

/// A command and all that it takes, as the argument parser describes it (`--experimental-dump-help`).
package struct CommandTree: Sendable, Decodable {
    let name: String
    let summary: String?
    let isShown: Bool
    /// The subcommand that runs if none is named.
    let standard: String?
    let subcommands: [CommandTree]
    let arguments: [ArgumentEntry]

    /// - Parameter dump: the complete JSON.
    package init(dump: some Sequence<UInt8>) throws {
        self = try JSONDecoder().decode(Dump.self, from: Data(dump)).command
    }

    private struct Dump: Decodable { let command: CommandTree }

    private enum Keys: String, CodingKey {
        case name = "commandName"
        case summary = "abstract"
        case isShown = "shouldDisplay"
        case standard = "defaultSubcommand"
        case subcommands, arguments
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        name = try values.decode(String.self, forKey: .name)
        summary = try values.decodeIfPresent(String.self, forKey: .summary)
        isShown = try values.decodeIfPresent(Bool.self, forKey: .isShown) ?? true
        standard = try values.decodeIfPresent(String.self, forKey: .standard)
        subcommands = try values.decodeIfPresent([CommandTree].self, forKey: .subcommands) ?? []
        arguments = try values.decodeIfPresent([ArgumentEntry].self, forKey: .arguments) ?? []
    }

    subscript(name: String) -> CommandTree? { subcommands.first { $0.name == name } }

    /// The arguments it takes before a subcommand is named.
    var ownArguments: [ArgumentEntry] { standard.flatMap { self[$0] }?.arguments ?? arguments }
}

/// An argument, option or flag of a command.
struct ArgumentEntry: Sendable, Decodable {
    enum Kind: String, Decodable { case positional, option, flag }

    /// How a value can be completed.
    enum Values: Sendable, Equatable {
        case nothing
        case list([String])
        case files, directories
        /// Names that the program can look up, of this kind.
        case known(String)
    }

    let kind: Kind
    /// As a user types them: `--config`, `-o`.
    let names: [String]
    let summary: String?
    let isShown: Bool
    let isRepeating: Bool
    /// Whether it takes only the arguments after `--`.
    let isBehindTerminator: Bool
    let values: Values

    private enum Keys: String, CodingKey {
        case kind, names, isRepeating
        case summary = "abstract"
        case isShown = "shouldDisplay"
        case strategy = "parsingStrategy"
        case values = "completionKind"
    }

    private struct Name: Decodable {
        let kind: String
        let name: String
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        kind = try values.decode(Kind.self, forKey: .kind)
        names = (try values.decodeIfPresent([Name].self, forKey: .names) ?? []).map {
            ($0.kind == "long" ? "--" : "-") + $0.name
        }
        summary = try values.decodeIfPresent(String.self, forKey: .summary)
        isShown = try values.decodeIfPresent(Bool.self, forKey: .isShown) ?? true
        isRepeating = try values.decodeIfPresent(Bool.self, forKey: .isRepeating) ?? false
        isBehindTerminator = try values.decodeIfPresent(String.self, forKey: .strategy) == "postTerminator"
        self.values = try values.decodeIfPresent(Values.self, forKey: .values) ?? .nothing
    }
}

extension ArgumentEntry.Values: Decodable {
    private enum Keys: CodingKey { case list, file, directory, shellCommand }
    private enum ListKeys: CodingKey { case values }
    private enum CommandKeys: CodingKey { case command }

    init(from decoder: any Decoder) throws {
        let kinds = try decoder.container(keyedBy: Keys.self)
        if kinds.contains(.list) {
            self = .list(try kinds.nestedContainer(keyedBy: ListKeys.self, forKey: .list).decode(forKey: .values))
        } else if kinds.contains(.shellCommand) {
            let command = try kinds.nestedContainer(keyedBy: CommandKeys.self, forKey: .shellCommand)
            self = .known(try command.decode(forKey: .command))
        } else {
            self = kinds.contains(.file) ? .files : kinds.contains(.directory) ? .directories : .nothing
        }
    }
}

private extension KeyedDecodingContainer {
    func decode<Value: Decodable>(forKey key: Key) throws -> Value { try decode(Value.self, forKey: key) }
}
