import Foundation

/// The commands of the program and their arguments, as ArgumentParser describes them with `--experimental-dump-help`
/// (serialization version 0). The manual pages, the tests and `--help` all use this description.
package struct ToolInfo: Decodable, Sendable {
    package let serializationVersion: Int
    /// The program itself.
    package let command: Command

    /// - Throws: `DecodingError` if the text is not such a description.
    package init(json: String) throws {
        self = try JSONDecoder().decode(ToolInfo.self, from: Data(json.utf8))
    }

    static let serve = "serve"
    /// A command that shares more options than this with `serve` takes all of them, and refers to it.
    private static let mostShared = 15

    /// The arguments of a command, without the options of `serve` if it takes these too.
    func arguments(of command: Command) -> (own: [Argument], takesThoseOfServe: Bool) {
        let all = command.visibleArguments
        guard command.commandName != Self.serve,
            let serve = self.command.visibleSubcommands.first(where: { $0.commandName == Self.serve })
        else { return (all, false) }
        let shared = Set(serve.visibleArguments.flatMap(\.allNames).map(\.text))
        let own = all.filter { $0.kind == .positional || !$0.allNames.contains { shared.contains($0.text) } }
        return all.count - own.count > Self.mostShared ? (own, true) : (all, false) // no trap: counts of options
    }

    package struct Command: Decodable, Sendable {
        package let commandName: String
        package let abstract: String?
        package let discussion: String?
        package let shouldDisplay: Bool
        /// The parent commands, the program first; nil for the program.
        package let superCommands: [String]?
        private let subcommands: [Command]?
        private let arguments: [Argument]?

        /// The words that a user types to run it: `reelcache downloads pause`.
        package var path: [String] { (superCommands ?? []) + [commandName] }

        /// The subcommands that `--help` lists, except `help`.
        package var visibleSubcommands: [Command] {
            (subcommands ?? []).filter { $0.shouldDisplay && $0.commandName != "help" }
        }

        /// The options, flags and arguments that `--help` lists, except `--version` and `--help`.
        package var visibleArguments: [Argument] {
            Argument.paired(
                (arguments ?? []).filter { $0.shouldDisplay && !["help", "version"].contains($0.valueName) })
        }

        /// The commands that take arguments, from this one downwards, in the order of the manual.
        package var leaves: [Command] {
            visibleSubcommands.isEmpty ? [self] : visibleSubcommands.flatMap(\.leaves)
        }
    }

    package struct Argument: Decodable, Sendable {
        package enum Kind: String, Decodable, Sendable { case positional, option, flag }

        package struct Name: Decodable, Sendable, Equatable {
            package enum Kind: String, Decodable, Sendable { case long, short, longWithSingleDash }

            package let kind: Kind
            package let name: String

            /// As a user types it: `--json`, `-o`.
            package var text: String { (kind == .long ? "--" : "-") + name }
        }

        package let kind: Kind
        package let shouldDisplay: Bool
        package let sectionTitle: String?
        package let isOptional: Bool
        package let isRepeating: Bool
        package let valueName: String?
        package let abstract: String?
        package let defaultValue: String?
        package let allValues: [String]?
        private var names: [Name]?

        /// The placeholder for the value, such as `size`; nil for a flag.
        package var placeholder: String? { kind == .flag ? nil : valueName ?? "value" }

        /// The names, short ones first; none for a positional argument.
        package var allNames: [Name] {
            let names = names ?? []
            return names.filter { $0.kind == .short } + names.filter { $0.kind != .short }
        }

        /// The description, with the values and the default that `--help` adds.
        package var words: String {
            let text = abstract ?? ""
            let values = allValues.map { "values: \($0.joined(separator: ", "))" }
            let standard = text.contains("(default: ") ? nil : defaultValue.map { "default: \($0)" }
            let remarks = [values, standard].compactMap(\.self)
            return remarks.isEmpty ? text : "\(text)\(text.isEmpty ? "" : " ")(\(remarks.joined(separator: "; ")))"
        }

        /// Combines pairs such as `--offline` and `--no-offline`, which ArgumentParser lists as two flags.
        fileprivate static func paired(_ arguments: [Argument]) -> [Argument] {
            var result: [Argument] = []
            for argument in arguments {
                let name = argument.allNames.first?.name ?? ""
                guard let last = result.last, argument.kind == .flag, last.kind == .flag,
                    name.hasPrefix("no-"), last.allNames.map(\.name).contains(String(name.dropFirst(3)))
                else {
                    result.append(argument)
                    continue
                }
                result[result.count - 1].names = last.allNames + argument.allNames
            }
            return result
        }
    }
}
