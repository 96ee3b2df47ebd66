import Foundation

/// The output of `reelcache --version`, and of `reelcache --version --verbose`.
struct VersionText {
    let build: BuildInformation

    /// The program and its commit on the first line, the libraries on the second.
    var short: String {
        let commit = build.commit.isEmpty ? "" : " (commit \(shortCommit))"
        return "reelcache \(build.version)\(commit)\n\(libraries.joined(separator: ", "))"
    }

    /// One line for each library, the whole commit, and what the program needs to run.
    var verbose: String {
        let rows =
            [("commit", build.commit.isEmpty ? "unknown: built without the history of the sources" : build.commit)]
            + [("compiler", build.compiler)] + build.libraries.map { ($0.name, $0.version) }
            + [("needs", build.neededFiles.isEmpty ? "no shared libraries" : build.neededFiles.joined(separator: " "))]
        let width = rows.map(\.0.count).max() ?? 0
        let lines = rows.map { name, text in
            name.padding(toLength: width + 2, withPad: " ", startingAt: 0) + text
        }
        return (["reelcache \(build.version)"] + lines).joined(separator: "\n")
    }

    /// As git abbreviates it, with the note of uncommitted changes.
    private var shortCommit: String {
        let parts = build.commit.split(separator: "-", maxSplits: 1)
        return ([parts.first.map { String($0.prefix(7)) } ?? ""] + parts.dropFirst().map(String.init))
            .joined(separator: "-")
    }

    private var libraries: [String] { build.libraries.map { "\($0.name) \($0.version)" } }
}
