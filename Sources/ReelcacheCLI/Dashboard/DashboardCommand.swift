import Administration
import ArgumentParser
import Foundation
import Reelcache

struct DashboardCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dashboard",
        abstract: "Open the dashboard of the running proxy in a browser.",
        discussion: """
            The page may change the cache: the link that opens it signs that browser in. It works once, for a minute.

              reelcache dashboard
              reelcache dashboard --print
            """)

    @Flag(help: "Print the link, and open nothing.")
    var print = false
    @OptionGroup var cache: CacheOptions

    func run() throws {
        let proxy = try cache.runningProxy()
        let link = try proxy.dashboardLink()
        guard !print else { return Swift.print(link) }
        let place = DashboardLaunch.directory(ProcessInfo.processInfo.environment, cacheDirectory: proxy.cacheDirectory)
        try DashboardLaunch(link, in: place).openInBrowser()
        Swift.print(
            "opened \(proxy.baseURL)/api/ in the browser; if that finds no file, use reelcache dashboard --print")
    }
}
