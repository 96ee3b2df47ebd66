/// The manual page of a command and its subcommands, such as `reelcache-downloads.1`.
struct CommandPage {
    private let tool: ToolInfo
    private let command: ToolInfo.Command
    private let edition: Edition
    private let others: [String]

    /// How many options the synopsis lists at most; with more, it shows `[options]`.
    private static let mostInSynopsis = 15

    /// - Parameter others: the names of all commands' pages.
    init(_ command: ToolInfo.Command, of tool: ToolInfo, edition: Edition, others: [String]) {
        (self.command, self.tool, self.edition, self.others) = (command, tool, edition, others)
    }

    static func name(_ command: ToolInfo.Command) -> String { command.path.joined(separator: "-") }

    var text: String {
        var page = Mdoc(
            name: Self.name(command), section: 1, description: Self.whatis(command.abstract ?? ""), edition: edition)
        page.section("SYNOPSIS")
        for leaf in command.leaves { synopsis(leaf, on: &page) }
        page.section("DESCRIPTION")
        Self.describe(command, on: &page)
        if command.visibleSubcommands.isEmpty {
            page.section("OPTIONS")
            list(command, on: &page)
        } else {
            page.section("COMMANDS")
            for leaf in command.leaves {
                page.subsection(leaf.path.joined(separator: " "))
                Self.describe(leaf, on: &page)
                list(leaf, on: &page)
            }
        }
        page.section("EXIT STATUS")
        page.prose(RootPage.exitStatus)
        page.seeAlso(
            ([RootPage.name] + others).filter { $0 != Self.name(command) }.map { ($0, 1) }
                + [(ConfigurationPage.name, 5)])
        return page.text
    }

    /// A sentence in the style of whatis(1): without a capital and a full stop.
    static func whatis(_ sentence: String) -> String {
        let text = sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        guard let first = text.first, text.dropFirst().first?.isUppercase != true else { return text }
        return first.lowercased() + text.dropFirst()
    }

    private static func describe(_ command: ToolInfo.Command, on page: inout Mdoc) {
        page.prose(command.abstract ?? "")
        if let discussion = command.discussion { page.prose(discussion, continues: true) }
    }

    private func synopsis(_ command: ToolInfo.Command, on page: inout Mdoc) {
        page.line(".Nm \(Mdoc.argument(command.path[0]))")
        page.line(".Cm \(command.path.dropFirst().map(Mdoc.argument).joined(separator: " "))")
        let named = command.visibleArguments.filter { $0.kind != .positional }
        if named.count > Self.mostInSynopsis {
            page.line(".Op Ar options")
        } else {
            for argument in named { page.line(Self.synopsis(argument)) }
        }
        for argument in command.visibleArguments where argument.kind == .positional {
            page.line(Self.synopsis(argument))
        }
    }

    private static func synopsis(_ argument: ToolInfo.Argument) -> String {
        var words: [String] = []
        if argument.isOptional { words.append("Op") }
        for (number, name) in argument.allNames.enumerated() {
            if number > 0 { words.append("|") }
            words.append("Fl \(flag(name))")
        }
        if let placeholder = argument.placeholder { words.append("Ar \(Mdoc.argument(placeholder))") }
        if argument.isRepeating { words.append("...") }
        return "." + words.joined(separator: " ")
    }

    /// The name without its first dash, which `Fl` adds.
    private static func flag(_ name: ToolInfo.Argument.Name) -> String { Mdoc.argument(String(name.text.dropFirst())) }

    private func list(_ command: ToolInfo.Command, on page: inout Mdoc) {
        let (own, others) = tool.arguments(of: command)
        page.list(own.map { (Self.term($0), Prose($0.words)) })
        guard others else { return }
        page.line(".Pp\nIt also takes the options of\n.Xr \(RootPage.name)-\(ToolInfo.serve) 1 .")
    }

    private static func term(_ argument: ToolInfo.Argument) -> String {
        let names = argument.allNames.map { "Fl \(flag($0))" }.joined(separator: " , ")
        let value = argument.placeholder.map { "Ar \(Mdoc.argument($0))" } ?? ""
        return [names, value].filter { !$0.isEmpty }.joined(separator: " ")
            + (argument.kind == .positional && argument.isRepeating ? " ..." : "")
    }
}
