import Foundation
import TestSupport
import Testing

/// What looks at a cache or changes it makes none, and says what is in its way.
@Suite struct NoCacheTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let commands = [
        ["ls"], ["ls", "--json"], ["show", "http://a/b"], ["pin", "http://a/b"], ["unpin", "http://a/b"],
        ["rm", "http://a/b"], ["rm", "--all"],
        ["rm", "--older-than", "1d", "--dry-run"], ["verify"], ["verify", "--repair"],
    ]

    @Test(arguments: commands) func whereThereIsNoCacheNoneIsMade(command: [String]) throws {
        for path in [directory.file("none"), directory.path] {
            let line = try #require(
                try ReelcacheCommand.run(command + ["--cache-dir", path]).failureLine(
                    isJSON: command.contains("--json")))
            #expect(line.contains("there is no cache at \(path)"), "\(line)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    }

    @Test(arguments: commands + [["import", "/proc/self/exe", "--as", "http://a/b"]])
    func aCacheDirectoryThatIsAFileIsNamed(command: [String]) throws {
        let path = directory.file("file")
        try Data("mine".utf8).write(to: URL(fileURLWithPath: path))
        let line = try #require(
            try ReelcacheCommand.run(command + ["--cache-dir", path]).failureLine(isJSON: command.contains("--json")))
        #expect(line.contains(path), "\(line)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("mine".utf8))
    }

    @Test(.enabled(if: geteuid() != 0, "root may write everywhere")) func aCacheThatIsReadOnlyIsNamed() throws {
        let shelf = try Shelf(.alone, whole: ["/a.mp4"])
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: shelf.cache.path)
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: shelf.cache.path) }
        let line = try #require(try shelf.run("ls").failureLine)
        #expect(line.contains(shelf.cache.path), "\(line)")
    }

    /// A process that has the cache and serves nothing, such as another command.
    @Test func whoHasTheCacheIsNamed() throws {
        let shelf = try Shelf(.alone, whole: ["/a.mp4"])
        let owner = try shelf.pretendOwner(url: "")
        defer { try? owner.close() }
        // Each waits for a while.
        let commands = try [["ls"], ["rm", "--all"], ["verify"]].map {
            try ReelcacheCommand.start($0 + ["--cache-dir", shelf.cache.path])
        }
        for command in commands {
            #expect(try command.waitForExit() == .exited(1))
            #expect(
                command.stderr
                    == "reelcache: process 4242 has the cache \(shelf.cache.path) open but runs no proxy: wait until it has ended\n"
            )
        }
    }
}
