import ArgumentParser
import CachePolicy
import ControlAPI
import Reelcache

/// How what a command prints shows URLs.
struct SecretOptions: ParsableArguments {
    @Flag(help: "Show URLs with all that opens them, such as tokens, for which *** stands otherwise.")
    var secrets = false

    /// What is left out of URLs; nil for nothing.
    func mask(_ configuration: ProxyConfiguration) throws -> URLMask? { secrets ? nil : try configuration.mask }

    /// A text that is shown.
    func shown(_ text: String, _ configuration: ProxyConfiguration) throws -> String {
        try mask(configuration)?.masked(text) ?? text
    }

    /// The same as JSON.
    func json(_ value: some Encodable, _ configuration: ProxyConfiguration) throws -> String {
        try shown(ControlJSON.pretty(value), configuration)
    }
}
