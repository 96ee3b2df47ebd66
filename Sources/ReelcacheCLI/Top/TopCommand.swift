import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Foundation
import Reelcache

struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watch plays, transfers and downloads on a full screen.",
        discussion: """
            Needs a running proxy and a terminal. Keys: up and down select; p and r pause and resume the selected \
            download, c cancels it; P and u pin and unpin what is selected; ? shows all keys, q quits.

              reelcache top
            """)

    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    func run() throws {
        guard FullScreen.isPossible else {
            throw ControlError(
                "top needs a terminal for input and output: for a pipe or a file there are reelcache stats --watch, reelcache ls and reelcache downloads list --json"
            )
        }
        let proxy = try cache.runningProxy()
        let mask = try secret.mask(try cache.configuration)
        let signals = try SignalReader([
            SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT,
        ])
        let screen = try FullScreen()
        let view = TopView(screen, signals, cacheDirectory: proxy.cacheDirectory, mask: mask)
        screen.enter()
        defer { screen.leave() }
        try view.run()
    }
}
