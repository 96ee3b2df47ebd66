import Testing

@testable import Configuration

/// The settings of a configuration file without problems.
func settings(_ text: String) throws -> Settings {
    var settings = Settings()
    try #require(ConfigurationFile(path: "r.yaml", text: Array(text.utf8)).apply(to: &settings) == [])
    return settings
}

/// What is wrong with a configuration file, a line each.
func problems(_ text: String) -> [String] {
    ConfigurationFile(path: "r.yaml", text: Array(text.utf8)).problems().map(\.description)
}
