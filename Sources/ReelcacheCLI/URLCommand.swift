import ArgumentParser
import Reelcache

struct URLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "url", abstract: "Print the URL to give a player.")

    @Argument(help: "An http or https URL.")
    var url: String
    @OptionGroup var cache: CacheOptions

    func run() throws {
        let base = RunningProxy(cacheDirectory: cache.path)?.baseURL ?? "http://\(ProxyConfiguration().listen)"
        print(try Proxy.url(for: url, through: base))
    }
}
