import ArgumentParser
import CachePolicy
import Reelcache

/// How a listing shows URLs.
struct SecretOptions: ParsableArguments {
    @Flag(help: "Show URLs with all that opens them, such as tokens, for which *** stands otherwise.")
    var secrets = false

    /// A text that is shown.
    func shown(_ text: String, _ configuration: ProxyConfiguration) throws -> String {
        secrets ? text : try configuration.mask.masked(text)
    }
}
