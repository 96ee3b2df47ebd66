import Foundation
import TestSupport
import Testing

/// What shells complete, asked in the shells themselves.
@Suite(CompletionShell.areExpected) struct CompletionTests {
    private let origin: ScriptedOrigin
    private let directory: TemporaryDirectory

    init() throws {
        (origin, directory) = (try ScriptedOrigin(), try TemporaryDirectory())
        for path in ["/film.mp4?a=1&b=2", "/film.mp4?a=2", "/other.mp4", "/token.mp4?token=abc"] {
            origin.serve(path, Media(seed: 91, size: 1000))
        }
    }

    private var cache: String { directory.file("cache") }

    private func fill(_ proxy: ProxyProcess) throws {
        for path in ["/film.mp4?a=1&b=2", "/film.mp4?a=2", "/other.mp4", "/token.mp4?token=abc"] {
            #expect(try proxy.get(origin.url(path)).status == 200)
        }
    }

    @Test(arguments: CompletionShell.expected) func commandsFlagsAndValuesAreOffered(shell: CompletionShell)
        async throws
    {
        try await blocking {
            let desk = try CompletionDesk(cache: cache)
            func offered(_ line: String) throws -> [String] { try desk.candidates(line, in: shell).sorted() }
            #expect(try offered("reelcache p") == ["pin", "play", "prefetch"])
            #expect(try offered("reelcache downloads re") == ["resume", "retry"])
            #expect(try offered("reelcache help con") == ["config"])
            #expect(try offered("reelcache ls --s") == ["--secrets", "--sort"])
            #expect(try offered("reelcache ls --sort ") == ["hits", "name", "recent", "size"])
            #expect(try offered("reelcache downloads list --state c") == ["cancelled", "completed"])
            #expect(try offered("reelcache serve --log-level war") == ["warning"])
            #expect(try offered("reelcache prefetch --quality b") == ["best"])
            // Nothing was made by looking.
            #expect(try offered("reelcache show ") == [] && !FileManager.default.fileExists(atPath: cache))
        }
    }

    @Test(arguments: CompletionShell.expected) func cachedURLsAreOffered(shell: CompletionShell) async throws {
        try await blocking {
            let desk = try CompletionDesk(cache: cache)
            let proxy = try ProxyProcess(cacheDirectory: cache)
            try fill(proxy)
            // What holds a secret is not told, nor masked: that would name nothing.
            let all = [origin.url("/film.mp4?a=1&b=2"), origin.url("/film.mp4?a=2"), origin.url("/other.mp4")]
            var files = Set<String>()
            for place in ["running", "closed"] {
                func offered(_ line: String) throws -> [String] { try desk.whole(line, in: shell) }
                #expect(try offered("reelcache show ") == all, "\(place)")
                #expect(try offered("reelcache show http:") == all, "\(place)")
                #expect(
                    try offered("reelcache rm \(all[2]) http://127.0.0.1:\(origin.port)/") == Array(all[..<2]),
                    "\(place)")
                #expect(try offered("reelcache unpin ") == [], "\(place)")
                #expect(try offered("reelcache show https:") == [], "\(place)")
                guard place == "running" else { continue }
                #expect(try proxy.process.terminate() == .exited(0))
                files = Set(try FileManager.default.contentsOfDirectory(atPath: cache))
            }
            // Nothing was made beside the index.
            #expect(try Set(FileManager.default.contentsOfDirectory(atPath: cache)) == files)
        }
    }

    /// Bash breaks words at `:` and `=`, and `&` ends a command where it is not quoted.
    @Test(arguments: CompletionShell.expected) func aURLIsCompletedInTheLine(shell: CompletionShell) async throws {
        try await blocking {
            let desk = try CompletionDesk(cache: cache)
            let proxy = try ProxyProcess(cacheDirectory: cache)
            try fill(proxy)
            let (film, other) = (origin.url("/film.mp4?a=1&b=2"), origin.url("/other.mp4"))
            let start = "http://127.0.0.1:\(origin.port)/"
            #expect(try desk.complete("reelcache show \(start)o", in: shell) == "<show><\(other)>")
            #expect(try desk.complete(#"reelcache show \#(start)film.mp4\?a=1"#, in: shell) == "<show><\(film)>")
            #expect(try desk.complete("reelcache show '\(start)film.mp4?a=1", in: shell) == "<show><\(film)>")
            #expect(try desk.complete("reelcache show \"\(start)o", in: shell) == "<show><\(other)>")
            #expect(try desk.complete("reelcache ls --sort=na", in: shell) == "<ls><--sort=name>")
        }
    }

    @Test(arguments: CompletionShell.expected) func downloadsAndCategoriesAreOffered(shell: CompletionShell)
        async throws
    {
        try await blocking {
            let desk = try CompletionDesk(cache: cache)
            let ordered = try ReelcacheCommand.run([
                "prefetch", "--detach", "--category", "evening", origin.url("/film.mp4?a=2"), origin.url("/other.mp4"),
                "--cache-dir", cache,
            ])
            #expect(ordered.exit == .exited(0), "\(ordered)")
            for place in ["closed", "running"] {
                let proxy =
                    place == "running" ? try ProxyProcess(cacheDirectory: cache, allow: nil) : nil
                func offered(_ line: String) throws -> [String] { try desk.candidates(line, in: shell).sorted() }
                #expect(try offered("reelcache history --category e") == ["evening"], "\(place)")
                if proxy == nil {
                    #expect(try offered("reelcache downloads pause ") == ["1", "2"], "\(place)")
                    #expect(try offered("reelcache downloads pause 1 ") == ["2"], "\(place)")
                    #expect(try offered("reelcache downloads resume ") == [], "\(place)")
                }
                _ = try proxy?.process.terminate()
            }
        }
    }

    @Test(arguments: CompletionShell.expected) func filesAndDirectoriesAreOffered(shell: CompletionShell) async throws {
        try await blocking {
            let desk = try CompletionDesk(cache: cache)
            try FileManager.default.createDirectory(
                atPath: directory.file("film dir"), withIntermediateDirectories: true)
            try Data().write(to: URL(fileURLWithPath: directory.file("only one.yaml")))
            let (file, folder) = (directory.file("only one.yaml"), directory.file("film dir"))
            #expect(
                try desk.complete("reelcache serve --config \(directory.path)/on", in: shell)
                    == "<serve><--config><\(file)>")
            #expect(
                try desk.complete("reelcache serve --config=\(directory.path)/on", in: shell)
                    == "<serve><--config=\(file)>")
            #expect(
                try desk.complete("reelcache prefetch -o \(directory.path)/f", in: shell)
                    // zsh takes the slash back when the line ends (AUTO_REMOVE_SLASH).
                    == "<prefetch><-o><\(folder)\(shell == .zsh ? "" : "/")>")
        }
    }
}
