import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import Upstream

private let url = try! OriginURL(url: "https://site.example/watch?v=a'b$(id)")

/// Programs that are run to find media.
@Suite struct ResolverCommandTests {
    private func resolver(_ command: [String], timeout: Double = 30) throws -> Resolver {
        try Resolver(hosts: [HostPattern("site.example")], paths: [], command: command, timeout: timeout)
    }

    private func run(
        _ script: String, arguments: [String] = [], timeout: Double = 30, environment: [String: String] = [:],
        isCancelled: () -> Bool = { false }
    ) throws -> (result: Result<String, ResolverFailure>, resolver: ScriptedResolver) {
        let program = try ScriptedResolver(script)
        let resolver = try resolver([program.path] + arguments, timeout: timeout)
        let result = Result { () throws(ResolverFailure) in
            try ResolverCommand.run(resolver, for: url, environment: environment, now: { 0 }, isCancelled: isCancelled)
        }
        return (result.map(\.url.absolute), program)
    }

    @Test(
        arguments: [
            ([], [url.absolute]), (["--get", "a b"], ["--get a b " + url.absolute]),
            (["--page={url}", "--quiet"], ["--page=\(url.absolute) --quiet"]),
            (["{url}", "{url}"], ["\(url.absolute) \(url.absolute)"]),
        ]) func urlTakesItsPlaceAmongTheArguments(arguments: [String], runs: [String]) throws
    {
        let (result, program) = try run("echo https://cdn.example/a", arguments: arguments)
        #expect(try result.get() == "https://cdn.example/a")
        #expect(program.runs == runs)
    }

    /// It cannot ask on the terminal of the proxy.
    @Test func programHasASessionOfItsOwn() throws {
        let (result, _) = try run(
            "set -- $(cat /proc/$$/stat); [ \"$6\" = $$ ] && [ \"$7\" = 0 ] && echo https://cdn.example/a || echo \"$6 $7\""
        )
        #expect(try result.get() == "https://cdn.example/a")
    }

    @Test func environmentIsSmall() throws {
        let environment = [
            "PATH": "/usr/bin:/bin", "HOME": "/home/a", "LANG": "C.UTF-8", "SECRET": "s",
            "http_proxy": "http://127.0.0.1:1",
            "REELCACHE_CONFIG": "x", "LD_PRELOAD": "/x.so",
        ]
        let (result, _) = try run(
            "echo https://h/$(env | grep -v ^PWD= | grep -v ^_= | cut -d= -f1 | sort | tr '\\n' -)",
            environment: environment)
        #expect(try result.get() == "https://h/HOME-LANG-OLDPWD-PATH-" || result.get() == "https://h/HOME-LANG-PATH-")
        #expect(ResolverEnvironment.variables(of: [:]) == ["PATH": "/usr/local/bin:/usr/bin:/bin"])
    }

    /// Connections and files of the proxy are open in this process, too.
    @Test func nothingIsOpenButItsOutput() throws {
        let (ends, other) = (Pipe(), Pipe())
        defer { withExtendedLifetime((ends, other)) {} }
        let (result, _) = try run("echo https://h/$(ls /proc/$$/fd | tr '\\n' -)")
        // The shell itself has its script open, and the pipe of the substitution.
        let names = try result.get().dropFirst("https://h/".count).split(separator: "-").compactMap { Int($0) }
        #expect(names.filter { $0 > 2 && $0 < 10 }.count <= 1, "\(names)")
    }

    @Test func itsInputIsEmptyAndItsDirectoryIsTheRoot() throws {
        let (result, _) = try run("read line; echo \"https://h$(pwd)$line\"")
        #expect(try result.get() == "https://h/")
    }

    @Test(
        arguments: [
            ("exit 3", .exited("resolver", code: 3, lastLine: "")),
            (
                "echo one >&2; echo 'two \u{1B}[31m' >&2; echo ' ' >&2; exit 1",
                .exited("resolver", code: 1, lastLine: "two \\u{1B}[31m")
            ),
            (
                "yes oops | head -c 1000000 >&2; echo the end >&2; exit 2",
                .exited("resolver", code: 2, lastLine: "the end")
            ),
            ("kill -15 $$", .killed("resolver", signal: 15)), ("exec yes", .tooLong("resolver", limit: 4 << 20)),
        ] as [(String, ResolverFailure)]) func failureIsNamed(script: String, failure: ResolverFailure) throws
    {
        let (result, _) = try run(script, environment: ["PATH": "/usr/bin:/bin"])
        #expect(result == .failure(failure))
    }

    @Test(arguments: [
        "exec sleep 1000", "trap '' TERM; while true; do sleep 0.05; done", "sleep 1000 | cat",
        "exec >&- 2>&-; sleep 1000",
    ])
    func programThatHangsIsEndedWithItsChildren(script: String) throws {
        var timeout = 0.5, pid: Int32?
        // A longer one where it had not come to that point by then.
        repeat {
            let (result, program) = try run(
                "echo $$ > \"$here/pid\"\n\(script)", timeout: timeout, environment: ["PATH": "/usr/bin:/bin"])
            #expect(result == .failure(.timedOut("resolver", after: timeout)))
            pid = (try? String(contentsOfFile: program.file("pid"), encoding: .utf8))
                .flatMap { Int32($0.trimmingCharacters(in: .newlines)) }
            timeout *= 4
        } while pid == nil && timeout < 200
        // Not even a child that became another's is left.
        try waitForTheEnd(ofGroup: try #require(pid))
    }

    @Test func childThatStaysBehindNeitherDelaysNorOutlivesTheAnswer() throws {
        let (result, program) = try run(
            "echo $$ > \"$here/pid\"; sleep 1000 & echo https://h/a", environment: ["PATH": "/usr/bin:/bin"])
        #expect(try result.get() == "https://h/a")
        let pid = try #require(
            Int32(try String(contentsOfFile: program.file("pid"), encoding: .utf8).trimmingCharacters(in: .newlines)))
        try waitForTheEnd(ofGroup: pid)
    }

    /// Waits until no process of the group runs. Those that have ended and that nobody has collected do not count.
    private func waitForTheEnd(ofGroup group: pid_t) throws {
        try eventually("the end of the group \(group)") {
            try !FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap({ Int32($0) }).contains {
                // proc(5): pid (name) state parent group
                let fields = (try? String(contentsOfFile: "/proc/\($0)/stat", encoding: .utf8))?.split(separator: ")")
                    .last?.split(separator: " ")
                return fields?.count ?? 0 > 2 && fields?[0] != "Z" && fields?[2] == "\(group)"
            }
        }
    }

    @Test func cancelledProgramEnds() throws {
        #expect(
            try run("exec sleep 1000", environment: ["PATH": "/usr/bin:/bin"], isCancelled: { true }).result
                == .failure(.closing))
    }

    @Test(
        arguments: [
            ("no-such-program", "it is not in PATH"), ("/no/such/program", "No such file or directory"),
            ("/etc/passwd", "Permission denied"),
        ]) func programThatCannotBeStartedIsNamed(program: String, reason: String) throws
    {
        let resolver = try resolver([program])
        let failure = #expect(throws: ResolverFailure.self) {
            try ResolverCommand.run(resolver, for: url, environment: [:], now: { 0 })
        }
        #expect(failure == .cannotStart(String(program.split(separator: "/").last ?? ""), reason: reason))
    }

    /// A text without `#!` would be run by a shell of the system's, if that were asked for.
    @Test func textWithoutAnInterpreterIsNotGivenToAShell() throws {
        let directory = try TemporaryDirectory()
        // As in `TemporaryDirectory.makeProgram`, another process writes it.
        let lines = ["-c", "echo 'echo https://h/a' >\"$0\" && chmod 755 \"$0\"", directory.file("text")]
        try Process.run(URL(fileURLWithPath: "/bin/sh"), arguments: lines).waitUntilExit()
        let resolver = try resolver([directory.file("text")])
        let failure = #expect(throws: ResolverFailure.self) {
            try ResolverCommand.run(resolver, for: url, environment: [:], now: { 0 })
        }
        #expect(failure == .cannotStart("text", reason: "Exec format error"))
    }

    // MARK: Resolvers

    @Test(
        arguments: [
            ([], [], ["a"], "the program would run for every URL"), (["h"], [], [], "names no program"),
            (["h"], [], [""], "names no program"), (["h"], [], ["{url}"], "{url} cannot name the program"),
            (["h"], [], ["a\0b"], "contains a null character"),
        ] as [([String], [String], [String], String)])
    func resolverThatCannotBeMeantIsRefused(hosts: [String], paths: [String], command: [String], reason: String) {
        let error = #expect(throws: RuleError.self) {
            try Resolver(
                hosts: hosts.map { try HostPattern($0) }, paths: paths.map { try Glob(path: $0) }, command: command,
                timeout: 1)
        }
        #expect(error?.reason.hasPrefix(reason) == true)
    }

    @Test func firstResolverThatMatchesIsUsed() throws {
        var policy = ProxyPolicy()
        policy.resolvers = [
            try Resolver(
                hosts: [HostPattern("*.site.example")], paths: [Glob(path: "/watch")], command: ["one"], timeout: 1),
            try Resolver(hosts: [HostPattern("www.site.example")], paths: [], command: ["two"], timeout: 1),
        ]
        for (url, command) in [
            ("https://www.site.example/watch?v=1", "one"), ("https://www.site.example/", "two"),
            ("http://a.site.example/watch", "one"),
            ("https://a.site.example/x", nil), ("https://site.example/watch", nil),
        ] as [(String, String?)] {
            #expect(policy.resolve(try OriginURL(url: url)).resolvedRule.resolver?.command.first == command, "\(url)")
        }
    }
}
