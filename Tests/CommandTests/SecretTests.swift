import Foundation
import TestSupport
import Testing

/// URLs that open what they name, as commands show them.
@Suite struct SecretTests {
    @Test(arguments: Ownership.allCases) func listingsShowSecretsOnlyWhereAskedTo(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/a.mp4"], configuration: "secret_parameters: [viewer]\nallow: [127.0.0.1]\n")
        let url = shelf.origin.url("/a.mp4?id=7&token=abc&viewer=def")
        if ownership == .alone {
            #expect(try shelf.say("prefetch", "--quiet", url) == "")
        } else {
            #expect(try #require(shelf.proxy).get(url).status == 200)
            #expect(try shelf.say("prefetch", "--quiet", url) == "")
        }
        let masked = shelf.origin.url("/a.mp4?id=7&token=***&viewer=***")
        for command in [["ls"], ["ls", "--json"], ["show", url], ["show", "--json", url], ["history"], ["history", "--json"], ["downloads", "list", "--all"]] {
            let shown = try ReelcacheCommand.run(command + ["--cache-dir", shelf.cache.path], environment: shelf.settingsEnvironment)
            #expect(shown.exit == .exited(0) && shown.stdout.contains(masked), "\(command): \(shown)")
            #expect(!shown.stdout.contains("abc") && !shown.stdout.contains("def"), "\(command): \(shown)")
            let open = try ReelcacheCommand.run(command + ["--secrets", "--cache-dir", shelf.cache.path], environment: shelf.settingsEnvironment)
            #expect(open.stdout.contains(url), "\(command): \(open)")
        }
        let failure = try #require(try shelf.run("show", masked).failureLine)
        #expect(failure.contains("--secrets"), "\(failure)")
    }
}
