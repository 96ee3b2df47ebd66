import TestSupport
import Testing

/// `ulimit -n` so low that descriptors end somewhere in the start: that is an error, wherever it is.
@Suite struct DescriptorLimitTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func startServesOrSaysWhyNot() throws {
        var refused = 0
        for limit in stride(from: 12, through: 68, by: 4) {
            let arguments = [
                "serve", "--listen", "127.0.0.1:0", "--threads", "8", "--cache-dir", directory.file("cache\(limit)"),
            ]
            let command = "ulimit -n \(limit); exec \"$0\" \"$@\""
            let serve = try ChildProcess(
                "/bin/sh", ["-c", command, ReelcacheCommand.path()] + arguments, environment: ReelcacheCommand.neutral)
            _ = try? serve.waitForLine(containing: " serves at ")
            let exit = try serve.exit ?? serve.terminate()
            #expect(exit == .exited(0) || exit == .exited(1), "with \(limit): \(exit) \(serve.stderr)")
            if exit == .exited(1) { refused += 1 }
        }
        #expect(refused > 0, "no limit was low enough")
    }
}
