import Administration
import ArgumentParser
import ControlAPI
import Reelcache

struct URLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "url", abstract: "Print the URL to give to a player.",
        discussion: """
            If the proxy serves mounts only, the URL is below a mount. The command reads mounts and any_origin from the \
            configuration file and the environment; it cannot see the flags of a running proxy.

              reelcache url https://example.org/film.mp4
              mpv "$(reelcache url https://example.org/film.mp4)"
            """)

    @Argument(help: "The http or https URL of the media.", completion: .known(.urls))
    var url: String
    @OptionGroup var cache: CacheOptions

    func run() throws {
        let proxy = try cache.sources().read().proxy
        let running = RunningProxy(cacheDirectory: proxy.cacheDirectory)
        guard let base = running.flatMap({ $0.isBrief ? nil : $0.baseURL }) ?? proxy.baseURL else {
            throw ControlError(
                "no proxy is running for the cache \(proxy.cacheDirectory), and listen \(proxy.listen) leaves its port open; start it first"
            )
        }
        // As the other commands, it takes what a player opens.
        let origin = url.hasPrefix(base + "/") ? try running?.url(url).absolute : nil
        print(try proxy.url(for: origin ?? url, through: base))
    }
}
