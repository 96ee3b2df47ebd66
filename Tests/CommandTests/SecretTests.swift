import Foundation
import TestSupport
import Testing

/// URLs that open what they name, as commands show them.
@Suite struct SecretTests {
    @Test func listingsShowSecretsOnlyWhereAskedTo() throws {
        let shelf = try Shelf(whole: ["/a.mp4"], configuration: "secret_parameters: [viewer]\nallow: [127.0.0.1]\n")
        let url = shelf.origin.url("/a.mp4?id=7&token=abc&viewer=def")
        #expect(try shelf.say("prefetch", "--quiet", url) == "")
        let masked = shelf.origin.url("/a.mp4?id=7&token=***&viewer=***")
        for command in [
            ["ls"], ["ls", "--json"], ["show", url], ["show", "--json", url], ["history"], ["history", "--json"],
            ["downloads", "list", "--all"],
        ] {
            let shown = try ReelcacheCommand.run(
                command + ["--cache-dir", shelf.cache.path], environment: shelf.settingsEnvironment)
            #expect(shown.exit == .exited(0) && shown.stdout.contains(masked), "\(command): \(shown)")
            #expect(!shown.stdout.contains("abc") && !shown.stdout.contains("def"), "\(command): \(shown)")
            let open = try ReelcacheCommand.run(
                command + ["--secrets", "--cache-dir", shelf.cache.path], environment: shelf.settingsEnvironment)
            #expect(open.stdout.contains(url), "\(command): \(open)")
        }
        let failure = try #require(try shelf.run("show", masked).failureLine)
        #expect(failure.contains("--secrets"), "\(failure)")
    }

    /// Whoever does what the error says gets what the URL would have opened; nobody else reads the password.
    @Test func credentialsInAURLAreRefusedWithTheRuleThatSendsThem() throws {
        let shelf = try Shelf(configuration: "allow: [127.0.0.1]\n")
        shelf.origin.serveFeed([1])
        let url = shelf.origin.url("/feed.xml")
        let secret = url.replacing("http://", with: "http://anna:pa55%20word@")
        let rule = "rules: [{host: '\(url.dropLast("/feed.xml".count))', headers: {Authorization: Basic BASE64}}]"
        let command = "printf %s 'anna:PASSWORD' | base64 -w0"
        for arguments in [
            ["feeds", "add", secret], ["prefetch", secret], ["prefetch", "--json", secret], ["play", secret],
            ["url", secret], ["show", secret], ["pin", secret], ["doctor", secret],
        ] {
            let refused = try ReelcacheCommand.run(
                arguments + ["--cache-dir", shelf.cache.path], environment: shelf.settingsEnvironment)
            let text = refused.stdout + refused.stderr
            #expect(
                text.contains(rule) && text.contains(command) && refused.exit != .exited(0), "\(arguments): \(text)")
            #expect(!text.contains("pa55"), "\(arguments): \(text)")
        }
        let proxy = try #require(shelf.proxy)
        for target in ["/" + secret, "/api/v1/resources?url=" + secret] {
            let answer = try RawClient.get(port: proxy.port, path: target)
            #expect(
                answer.status == 400 && answer.text.contains(rule) && answer.text.contains(command), "\(answer.text)")
        }
        #expect(!proxy.process.stderr.contains("pa55"))
        #expect(shelf.origin.requestCount("/feed.xml") == 0)

        let basic = try ChildProcess.run("/bin/sh", ["-c", command.replacing("PASSWORD", with: "pa55 word")]).stdout
        let other = try Shelf(.alone, configuration: "allow: [127.0.0.1]\n\(rule.replacing("BASE64", with: basic))\n")
        let added = try ReelcacheCommand.run(
            ["feeds", "add", url, "--latest", "0", "--cache-dir", other.cache.path],
            environment: other.settingsEnvironment)
        #expect(added.exit == .exited(0), "\(added)")
        let sent = shelf.origin.requests("/feed.xml").map { $0.headers["Authorization"] }
        #expect(!sent.isEmpty && sent.allSatisfy { $0 == "Basic YW5uYTpwYTU1IHdvcmQ=" }, "\(sent)")
    }

    /// Their lines end in logs as often as on a terminal.
    @Test(arguments: Ownership.allCases) func commandsThatAreToldAURLSayItWithoutSecrets(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, configuration: "secret_parameters: [viewer]\nallow: [127.0.0.1]\n")
        shelf.origin.serve("/a.mp4", shelf.film)
        for path in ["/gone.mp4", "/later.mp4"] { shelf.origin.script(path) { ($0.status, $0.body) = (404, []) } }
        let file = shelf.cache.file("film.mp4")
        try Data(repeating: 1, count: 10).write(to: URL(fileURLWithPath: file))
        func url(_ path: String, _ secret: String = "token=abc&viewer=def") -> String {
            shelf.origin.url("\(path)?id=7&\(secret)")
        }
        let commands: [(arguments: [String], path: String)] = [
            (["prefetch", url("/gone.mp4")], "/gone.mp4"), (["prefetch", "--json", url("/gone.mp4")], "/gone.mp4"),
            (["prefetch", "--json", url("/a.mp4")], "/a.mp4"),
            (["prefetch", "--json", "--detach", url("/later.mp4")], "/later.mp4"),
            (["downloads", "pause", "--json", url("/later.mp4")], "/later.mp4"),
            (["downloads", "cancel", url("/later.mp4")], "/later.mp4"),
            (["pin", url("/a.mp4")], "/a.mp4"), (["pin", "--json", "--filter", "a.mp4"], "/a.mp4"),
            (["unpin", "--all"], "/a.mp4"), (["unpin", url("/a.mp4"), url("/none.mp4")], "/none.mp4"),
            (["import", file, "--as", url("/b.mp4")], "/b.mp4"),
            (["import", file, "--replace", "--json", "--as", url("/b.mp4")], "/b.mp4"),
            (["export", "--json", "-o", shelf.cache.file("copy"), url("/b.mp4")], "/b.mp4"),
            (["rm", url("/b.mp4"), url("/none.mp4")], "/none.mp4"),
        ]
        for (arguments, path) in commands {
            let said = try ReelcacheCommand.run(
                arguments + ["--cache-dir", shelf.cache.path], environment: shelf.settingsEnvironment)
            let text = (said.stdout + said.stderr).replacing("\\/", with: "/")
            #expect(text.contains(url(path, "token=***&viewer=***")), "\(arguments): \(said)")
            #expect(!text.contains("abc") && !text.contains("def"), "\(arguments): \(said)")
        }
        #expect(try shelf.say("pin", "--secrets", url("/a.mp4")).contains(url("/a.mp4")))
    }

    @Test func damageIsToldWithoutSecrets() throws {
        let shelf = try Shelf(.alone, whole: ["/a.mp4?token=abc"])
        try shelf.damage()
        for flags in [[], ["--json"]] {
            let said = try ReelcacheCommand.run(["verify", "--cache-dir", shelf.cache.path] + flags)
            #expect(said.stdout.contains("a.mp4?token=***") && !said.stdout.contains("abc"), "\(said)")
        }
        #expect(try shelf.run("verify", "--secrets").stdout.contains("a.mp4?token=abc"))
    }
}
