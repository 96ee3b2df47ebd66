import ArgumentParser
import CachePolicy
import ControlAPI
import Reelcache

/// Whether a command shows the secrets in URLs.
struct SecretOptions: ParsableArguments {
    @Flag(help: "Show passwords and tokens in URLs instead of ***.")
    var secrets = false

    /// What masks secrets in URLs; nil to mask nothing.
    func mask(_ configuration: ProxyConfiguration) throws -> URLMask? { secrets ? nil : try configuration.mask }

    /// A text with its secrets masked.
    func shown(_ text: String, _ configuration: ProxyConfiguration) throws -> String {
        try mask(configuration)?.masked(text) ?? text
    }

    /// The same as JSON.
    func json(_ value: some Encodable, _ configuration: ProxyConfiguration) throws -> String {
        try shown(ControlJSON.pretty(value), configuration)
    }
}
