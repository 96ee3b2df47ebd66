/// The documentation that the program generates: its manual pages and the sample configuration. All of it has two
/// sources, so that it agrees with the program: the descriptions of the commands (`ToolInfo`) and the table of settings
/// (`Setting.all`).
package struct Manual: Sendable {
    private let tool: ToolInfo

    package init(_ tool: ToolInfo) { self.tool = tool }

    /// The manual pages with their paths, such as `man1/reelcache.1`.
    package func pages(_ edition: Edition) -> [(path: String, text: String)] {
        let commands = tool.command.visibleSubcommands
        let names = commands.map(CommandPage.name)
        return [("man1/\(RootPage.name).1", RootPage(tool.command, edition: edition).text)]
            + commands.map {
                ("man1/\(CommandPage.name($0)).1", CommandPage($0, of: tool, edition: edition, others: names).text)
            }
            + [
                (
                    "man5/\(ConfigurationPage.name).5",
                    ConfigurationPage(edition: edition, commands: names).text
                )
            ]
    }

    /// `config/reelcache.yaml`.
    package static var sampleFile: String { SampleFile().text }
}
