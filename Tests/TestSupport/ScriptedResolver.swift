import Foundation

/// A program that finds the media behind pages: a shell script that notes its runs and then does what a test says.
package final class ScriptedResolver: Sendable {
    private let directory: TemporaryDirectory

    /// - Parameter script: lines for the shell, in which `$n` is the number of this run, from 1, `$1` the first argument,
    ///   and `$here` a directory of its own.
    package init(_ script: String) throws {
        directory = try TemporaryDirectory()
        try directory.makeProgram(
            "resolver",
            """
            here='\(directory.path)'
            echo "$*" >> "$here/runs"
            n=$(wc -l < "$here/runs")
            \(script)
            """)
    }

    /// Its absolute path.
    package var path: String { directory.file("resolver") }

    /// The arguments of each run, joined by spaces.
    package var runs: [String] {
        let text = (try? String(contentsOfFile: directory.file("runs"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    /// Creates an empty file in its directory, which lets a script go on that waits for it.
    package func touch(_ name: String) throws { try Data().write(to: URL(fileURLWithPath: directory.file(name))) }

    /// The path of a file in its directory.
    package func file(_ name: String) -> String { directory.file(name) }

    /// A line of a script that waits until `touch` was called.
    package static func wait(for name: String) -> String { "while [ ! -e \"$here/\(name)\" ]; do sleep 0.01; done" }
}
