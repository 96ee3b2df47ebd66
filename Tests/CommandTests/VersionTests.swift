import TestSupport
import Testing

/// `reelcache --version`
@Suite struct VersionTests {
    private static let libraries = ["libevent", "libcurl", "SQLite", "expat", "zlib", "xxHash", "libidn2"]

    @Test func commitAndLibrariesAreNamed() throws {
        let outcome = try ReelcacheCommand.run(["--version"])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "")
        let lines = outcome.stdout.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 3 && lines.last == "", "\(outcome.stdout)")
        #expect(
            lines[0].wholeMatch(of: /reelcache \d+\.\d+\.\d+(\ \(commit [0-9a-f]{7}(-changed)?\))?/) != nil,
            "\(lines[0])")
        let named = lines[1].split(separator: ",").map { $0.drop(while: \.isWhitespace) }
        #expect(named.map { $0.prefix { $0 != " " } }.map(String.init) == Self.libraries)
        for library in named { #expect(library.contains(/\ [0-9]+\.[0-9]+/), "\(library)") }
    }

    @Test(arguments: [["--version", "--verbose"], ["--verbose", "--version"]])
    func whatItNeedsIsNamed(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(arguments)
        #expect(outcome.exit == .exited(0) && outcome.stderr == "")
        let rows = outcome.stdout.split(separator: "\n").dropFirst().map { $0.split(separator: " ", maxSplits: 1) }
        #expect(rows.map { String($0[0]) } == ["commit", "compiler"] + Self.libraries + ["needs"], "\(outcome.stdout)")
        let needs = try #require(rows.last?.last)
        #expect(needs.contains("libcurl.so.4") && needs.contains("libc.so.6"), "\(needs)")
    }

    @Test func otherWordsAreWrongUsage() throws {
        #expect(try ReelcacheCommand.run(["--verbose"]).exit == .exited(2))
    }
}
