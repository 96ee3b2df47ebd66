import Foundation
import TestSupport
import Testing

/// `reelcache top`, on a terminal of its own.
@Suite struct TopTests {
    /// A shelf whose origin sends half of each film, and then waits.
    private static func shelf(_ paths: String...) throws -> Shelf {
        let shelf = try Shelf()
        for path in paths {
            shelf.origin.serve(path, shelf.film)
            shelf.origin.script(path) { $0.stallAfter = 524_288 }
        }
        return shelf
    }

    private static func top(
        _ shelf: Shelf, _ flags: [String] = [], shell: String? = nil, environment: [String: String?] = [:],
        columns: Int = 100
    ) throws -> TerminalProcess {
        let top = try TerminalProcess.reelcache(
            ["top", "--cache-dir", shelf.cache.path] + flags, shell: shell, environment: environment, columns: columns)
        try top.waitForLine(containing: "reelcache   ")
        return top
    }

    /// A player that has read the first bytes.
    private static func player(_ shelf: Shelf, _ path: String) throws -> RawClient {
        let client = try RawClient(port: try #require(shelf.proxy).port)
        let target = ProxyProcess.target(shelf.origin.url(path))
        try client.send(client.request(target, headers: [("User-Agent", "mpv 0.35.1")]))
        _ = try client.readHead()
        _ = try client.readBody(exactly: 10_000)
        return client
    }

    private static func expectRestored(
        _ top: TerminalProcess, _ exit: ChildProcess.Exit, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(try top.waitForExit() == exit, sourceLocation: sourceLocation)
        #expect(!top.isFullScreen && top.lines == [], "\(top.lines)", sourceLocation: sourceLocation)
        #expect(top.output.hasSuffix(left), sourceLocation: sourceLocation)
    }

    /// What gives the screen back.
    private static let left = "\u{1B}[?2004l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

    @Test func playsTransfersAndDownloadsAreShown() async throws {
        try await blocking {
            let shelf = try Self.shelf("/film.mp4", "/next.mp4")
            let player = try Self.player(shelf, "/film.mp4")
            _ = try shelf.say("prefetch", "--detach", shelf.origin.url("/next.mp4"))
            let top = try Self.top(shelf)
            #expect(top.isFullScreen && !top.isInLineMode)
            try top.waitForScreen("all three lists") { lines in
                lines.contains { $0.contains("PLAYS (1)") } && lines.contains { $0.contains("TRANSFERS (2)") }
                    && lines.contains { $0.contains("mpv 0.35.1") && $0.hasSuffix("film.mp4") }
                    && lines.contains { $0.contains("uri-miss") && $0.contains("download") }
                    && lines.contains { $0.contains("downloading") && $0.contains("52 %") && $0.hasSuffix("next.mp4") }
                    ? () : nil
            }
            player.close()
            try top.type("q")
            try Self.expectRestored(top, .exited(0))
        }
    }

    @Test func keysPauseResumeAndCancel() async throws {
        try await blocking {
            let shelf = try Self.shelf("/next.mp4")
            _ = try shelf.say("prefetch", "--detach", shelf.origin.url("/next.mp4"))
            let top = try Self.top(shelf, ["--secrets"])
            try top.waitForLine(containing: "52 %")
            try top.type("p")
            try top.waitForLine(containing: "select a download to pause")
            // Escape sequences are keys, too; what is pasted is not.
            try top.type("\u{1B}[200~qcy\u{1B}[201~\u{1B}[Fp")
            try top.waitForLine(containing: "paused")
            try top.type("r")
            // The row may say so all the time, this line only once the proxy has answered.
            try top.waitForLine(containing: "next.mp4: downloading")
            try top.type("c")
            try top.waitForLine(containing: "cancel next.mp4? (y/n)")
            try top.type("n")
            try top.waitForLine(containing: "not cancelled")
            try top.type("cy")
            try top.waitForLine(containing: "Nothing is being played")
            try top.type("?")
            try top.waitForLine(containing: "pin or unpin")
            try top.type("qq")
            try Self.expectRestored(top, .exited(0))
        }
    }

    @Test func keysPinAndUnpin() async throws {
        try await blocking {
            let shelf = try Self.shelf("/film.mp4")
            let player = try Self.player(shelf, "/film.mp4")
            let top = try Self.top(shelf)
            try top.waitForLine(containing: "PLAYS (1)")
            try top.type("jP")
            try top.waitForLine(containing: "pinned \(shelf.origin.url("/film.mp4"))")
            #expect(try shelf.say("ls", "--json").contains("\"is_pinned\" : true"))
            try top.type("u")
            try top.waitForLine(containing: "unpinned \(shelf.origin.url("/film.mp4"))")
            player.close()
            try top.interrupt()
            try Self.expectRestored(top, .exited(0))
        }
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGUSR1])
    func aSignalRestoresTheTerminal(number: Int32) async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let top = try Self.top(shelf)
            top.signal(number)
            try Self.expectRestored(top, .exited(0))
            try shelf.close()
        }
    }

    @Test(arguments: ["\u{3}", "\u{1C}"]) func theKeyOfASignalRestoresTheTerminal(key: String) async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let top = try Self.top(shelf)
            try top.type(key)
            try Self.expectRestored(top, .exited(0))
            try shelf.close()
        }
    }

    /// `top` as the child of a shell, with its process and that which gives the terminal back.
    private static func topInShell(_ shelf: Shelf, _ script: String) throws -> (TerminalProcess, pid_t, pid_t) {
        let shell = try top(shelf, shell: script, environment: ["SWIFT_BACKTRACE": "enable=no"])
        let top = try #require(ProcessTable.children(of: shell.pid).first)
        return (shell, top, try #require(ProcessTable.children(of: top).first))
    }

    @Test(arguments: [SIGKILL, SIGABRT, SIGSEGV, SIGXCPU])
    func whatCannotBeCaughtRestoresTheTerminalToo(number: Int32) async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let (shell, top, guardian) = try Self.topInShell(shelf, #""$@"; read line"#)
            #expect(shell.isFullScreen && !shell.isInLineMode)
            kill(top, number)
            try eventually("the shell's terminal") { !shell.isFullScreen && shell.isInLineMode }
            #expect(shell.output.contains(Self.left))
            try eventually("no process left") { !ProcessTable.isRunning(guardian) }
            try shell.type("\n")
            try shell.waitForExit()
            try shelf.close()
        }
    }

    @Test func quittingLeavesNoProcess() async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let (shell, top, guardian) = try Self.topInShell(shelf, #""$@"; echo done; read line"#)
            try shell.type("q")
            try shell.waitForLine(containing: "done")
            #expect(!ProcessTable.isRunning(top) && !ProcessTable.isRunning(guardian))
            try shell.type("\n")
            try shell.waitForExit()
            try shelf.close()
        }
    }

    @Test func theTerminalOfAnotherProgramIsLeftAlone() async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let (shell, top, guardian) = try Self.topInShell(shelf, #"set -m; "$@"; cat"#)
            kill(top, SIGSTOP)
            try shell.type("cat has the terminal\n")
            try shell.waitForLine(containing: "cat has the terminal")
            kill(top, SIGKILL)
            try eventually("the guardian's end") { !ProcessTable.isRunning(guardian) }
            #expect(!shell.output.contains(Self.left) && shell.isFullScreen)
            try shelf.close()
        }
    }

    /// The shell has set its own modes while the program was stopped by somebody else.
    @Test func afterAStopKeysWorkAgain() async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let top = try Self.top(shelf)
            top.signal(SIGSTOP)
            try eventually("a stopped process") { ProcessTable.isStopped(top.pid) }
            try top.setLineMode()
            top.signal(SIGCONT)
            try eventually("keys one by one") { !top.isInLineMode }
            try top.type("q")
            try Self.expectRestored(top, .exited(0))
            try shelf.close()
        }
    }

    @Test func aTerminalThatTakesNoOutputDoesNotKeepIt() async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let top = try Self.top(shelf)
            try top.stopOutput()
            try top.type("?")
            top.signal(SIGTERM)
            #expect(try top.waitForExit() == .exited(0))
            try shelf.close()
        }
    }

    @Test func aLineThatFillsTheScreenIsComplete() async throws {
        try await blocking {
            let path = "/" + String(repeating: "long/", count: 40) + "film.mp4"
            let shelf = try Self.shelf(path)
            let player = try Self.player(shelf, path)
            let top = try Self.top(shelf)
            let line = try top.waitForLine(containing: "long/film")
            #expect(line.hasSuffix("long/film.mp4") && line.count == 100)
            player.close()
            try top.type("q")
            try Self.expectRestored(top, .exited(0))
        }
    }

    @Test func whileItIsSuspendedTheShellHasTheTerminal() async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let top = try Self.top(shelf)
            try top.type("\u{1A}")
            try eventually("the shell's terminal") { !top.isFullScreen && top.isInLineMode }
            #expect(top.lines == [])
            // As a shell does: what it continues has been stopped.
            try eventually("a stopped process") { ProcessTable.isStopped(top.pid) }
            top.signal(SIGCONT)
            try top.waitForLine(containing: "Nothing is being played")
            #expect(top.isFullScreen && !top.isInLineMode)
            try top.type("q")
            try Self.expectRestored(top, .exited(0))
        }
    }

    @Test func anotherSizeIsFilled() async throws {
        try await blocking {
            let shelf = try Self.shelf()
            let top = try Self.top(shelf)
            for (columns, rows) in [(40, 10), (120, 40), (20, 3)] {
                try top.resize(columns: columns, rows: rows)
                top.signal(SIGWINCH)
                try top.waitForScreen("\(rows) rows of \(columns) columns") { lines in
                    lines.count == rows && lines.allSatisfy { $0.count <= columns }
                        && lines.last?.hasPrefix("q quit") == true ? () : nil
                }
            }
            try top.type("q")
            try Self.expectRestored(top, .exited(0))
            try shelf.close()
        }
    }

    @Test func aProxyThatHasEndedIsFoundAgain() async throws {
        try await blocking {
            let cache = try TemporaryDirectory()
            let first = try ProxyProcess(cacheDirectory: cache.path)
            let top = try TerminalProcess.reelcache(["top", "--cache-dir", cache.path], columns: 200)
            try top.waitForLine(containing: "Nothing is being played")
            try first.process.killNow()
            try top.waitForLine(containing: "trying again")
            let second = try ProxyProcess(cacheDirectory: cache.path)
            try top.waitForLine(containing: "q quit")
            #expect(second.port != first.port)
            try top.type("q")
            try Self.expectRestored(top, .exited(0))
        }
    }

    @Test func coloursAreLeftOutWhereTheyAreNotWanted() async throws {
        try await blocking {
            let shelf = try Self.shelf()
            for (environment, isStyled) in [(["NO_COLOR": "1"], false), (["NO_COLOR": nil], true)]
                as [([String: String?], Bool)]
            {
                let top = try Self.top(shelf, environment: environment)
                try top.type("q")
                _ = try top.waitForExit()
                #expect(top.output.contains("\u{1B}[1m") == isStyled)
            }
        }
    }

    @Test func secretsAreMasked() async throws {
        try await blocking {
            let shelf = try Self.shelf("/film.mp4?token=geheim")
            let player = try Self.player(shelf, "/film.mp4?token=geheim")
            let top = try Self.top(shelf, columns: 200)
            try top.waitForLine(containing: "token=***")
            player.close()
            try top.type("q")
            _ = try top.waitForExit()
            #expect(!top.output.contains("geheim"))
        }
    }

    @Test func withoutATerminalItNamesWhatThereIs() throws {
        let shelf = try Self.shelf()
        let line = try #require(try shelf.run("top").failureLine)
        #expect(line.contains("terminal") && line.contains("stats --watch") && line.contains("reelcache ls"))
    }

    @Test func withoutAProxyItSaysHowToGetOne() throws {
        let cache = try TemporaryDirectory()
        let top = try TerminalProcess.reelcache(["top", "--cache-dir", cache.path], columns: 300)
        #expect(try top.waitForExit() == .exited(1))
        #expect(top.output.contains("no proxy is running") && top.output.contains("reelcache serve"))
        #expect(!top.output.contains("\u{1B}[?1049h"))
    }
}
