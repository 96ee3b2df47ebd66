import Configuration

/// `reelcache.yaml.5`: every key of the configuration file.
struct ConfigurationPage {
    static let name = "reelcache.yaml"

    private let edition: Edition
    private let commands: [String]

    /// - Parameter commands: the names of the commands' pages.
    init(edition: Edition, commands: [String]) { (self.edition, self.commands) = (edition, commands) }

    var text: String {
        var page = Mdoc(name: Self.name, section: 5, description: "configuration file of reelcache", edition: edition)
        page.section("DESCRIPTION")
        page.prose(Self.description)
        page.section("KEYS")
        page.list(Setting.all.map { (Self.term($0.key, $0.placeholder), Prose(Self.words($0))) })
        return page.text
    }

    private static func term(_ key: String, _ placeholder: String) -> String {
        "Cm \(Mdoc.argument(key)) : Ar \(Mdoc.argument(placeholder))"
    }

    private static func words(_ setting: Setting) -> String { setting.summary }

    private static let description = """
        Reelcache reads its settings from a YAML file.
        """
}
