import Administration
import ArgumentParser
import Reelcache

struct URLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "url", abstract: "Print the URL to give a player.",
        discussion:
            "Where the proxy serves only what is mounted, that is below a mount. Mounts and any_origin are those of the configuration file and the "
            + "environment: flags of a running proxy are not known here.")

    @Argument(help: "An http or https URL.", completion: .known(.urls))
    var url: String
    @OptionGroup var cache: CacheOptions

    func run() throws {
        let proxy = try cache.sources().read().proxy
        guard let base = RunningProxy(cacheDirectory: proxy.cacheDirectory)?.baseURL ?? proxy.baseURL else {
            throw CacheAccessError(
                "no proxy is running for the cache \(proxy.cacheDirectory), and listen \(proxy.listen) does not say its port; start it first"
            )
        }
        print(try proxy.url(for: url, through: base))
    }
}
