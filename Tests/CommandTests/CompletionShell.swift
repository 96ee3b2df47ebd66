import Foundation
import TestSupport
import Testing

/// A shell that completes as it does for a person.
enum CompletionShell: String, CaseIterable, CustomTestStringConvertible {
    case bash, zsh, fish

    var testDescription: String { rawValue }

    private var path: String? { ["/usr/bin", "/bin"].map { "\($0)/\(rawValue)" }.first { access($0, X_OK) == 0 } }

    /// Those whose tests are to run: where one is missing they are skipped, but fail under `CI=true`.
    static let expected = allCases.filter { $0.path != nil || ProcessInfo.processInfo.environment["CI"] == "true" }

    /// Says which are missing.
    static let areExpected = ConditionTrait.enabled(
        if: expected.count == allCases.count,
        "not installed: \(allCases.filter { !expected.contains($0) }.map(\.rawValue).joined(separator: ", "))")

    func location() throws -> String {
        try #require(
            path, "\(rawValue) is not installed, and CI=true makes that a failure: apt-get install \(rawValue)")
    }
}

/// `reelcache` with its completion script, and shells that have loaded it.
struct CompletionDesk {
    let directory: TemporaryDirectory
    private let environment: [String: String?]

    /// - Parameter cache: its directory.
    init(cache: String) throws {
        directory = try TemporaryDirectory()
        let home = directory.file("home")
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true)
        let bin = URL(fileURLWithPath: try ReelcacheCommand.path()).deletingLastPathComponent().path
        environment = ReelcacheCommand.neutral.merging([
            "PATH": "\(bin):/usr/bin:/bin", "HOME": home, "REELCACHE_CACHE_DIR": cache, "LC_ALL": "C.UTF-8",
            "TERM": "dumb", "XDG_CONFIG_HOME": nil, "XDG_DATA_HOME": nil, "ZDOTDIR": nil, "BASH_ENV": nil,
            // A machine that runs other tests is slower than people are patient.
            "REELCACHE_COMPLETION_PATIENCE": "60000000",
        ]) { $1 }
        for shell in CompletionShell.allCases {
            let script = try ReelcacheCommand.run(["--generate-completion-script", shell.rawValue])
            try #require(script.exit == .exited(0), "\(script)")
            try script.stdout.write(toFile: file(shell), atomically: true, encoding: .utf8)
        }
    }

    private func file(_ shell: CompletionShell) -> String { directory.file("completion.\(shell.rawValue)") }

    /// What `reelcache` is given after TAB was pressed at the end of the line, where one candidate is left.
    func complete(_ line: String, in shell: CompletionShell) throws -> String {
        guard shell == .fish else { return try typed(line, in: shell) }
        let candidates = try candidates(line, in: .fish)
        #expect(candidates.count == 1, "\(candidates)")
        // It puts the whole word in the place of the one at the cursor.
        let before = line.split(separator: " ").dropFirst().dropLast().map { "<\($0)>" }.joined()
        return before + "<\(candidates.first ?? "")>"
    }

    /// The words that could stand at the end of the line, in their order.
    func whole(_ line: String, in shell: CompletionShell) throws -> [String] {
        let candidates = try candidates(line, in: shell)
        guard shell == .bash else { return candidates.sorted() }
        // The rest of a word, quoted.
        let kept = (line.split(separator: " ", omittingEmptySubsequences: false).last ?? "")
        let start = kept.lastIndex { ":=".contains($0) }.map { String(kept[...$0]) } ?? ""
        return candidates.map { start + $0.replacing("\\", with: "") }.sorted()
    }

    /// What the shell offers for a line, without what it adds to it.
    func candidates(_ line: String, in shell: CompletionShell) throws -> [String] {
        switch shell {
        case .bash: try bashCandidates(line)
        case .zsh: try zshCandidates(line)
        case .fish:
            try lines(
                ["-N", "-c", "source \(file(.fish)); complete -C \(Self.quoted(line))"], of: .fish
            ).map { String($0.prefix { $0 != "\t" }) }
        }
    }

    private func lines(_ arguments: [String], of shell: CompletionShell) throws -> [String] {
        let outcome = try ChildProcess.run(try shell.location(), arguments, environment: environment)
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
        return outcome.stdout.split(separator: "\n").map(String.init)
    }

    private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: #"'\''"#) + "'" }

    // MARK: A terminal

    /// Types a line and TAB into an interactive shell, then Enter on what comes of it: `reelcache` is a function there
    /// that says what it was given.
    private func typed(_ line: String, in shell: CompletionShell) throws -> String {
        let start =
            switch shell {
            case .bash:
                "source \(file(.bash)); reelcache() { printf '<%s>' \"$@\"; echo .; }; bind 'set bell-style none'"
            default:
                "autoload -U compinit; compinit -u -D; source \(file(.zsh)); reelcache() { printf '<%s>' \"$@\"; print . }; unsetopt beep list_beep prompt_cr prompt_sp zle_bracketed_paste; unset zle_bracketed_paste"
            }
        let arguments = shell == .bash ? ["--norc", "--noprofile", "-i"] : ["-f", "-i"]
        let terminal = try TerminalProcess(
            try shell.location(), arguments, environment: environment.merging(["PS1": "> "]) { $1 }, columns: 400)
        try terminal.type(start + "; echo rea''dy\n")
        try terminal.waitForLine(containing: "ready")
        try terminal.type(line + "\t")
        // What the shell makes of TAB comes before it takes the next key.
        try terminal.type("\n")
        let said = try terminal.waitForScreen("what it was given") { lines in
            lines.first { $0.contains(#/(^|> |\r)<.*>\.$/#) }
        }
        terminal.signal(SIGKILL)
        return try #require(said.firstMatch(of: #/(<.*>)\.$/#).map { String($0.1) })
    }

    private func bashCandidates(_ line: String) throws -> [String] {
        let script = """
            source \(file(.bash)); compopt() { echo "option $2"; }
            COMP_LINE=\(Self.quoted(line)); COMP_POINT=${#COMP_LINE}
            word=${COMP_LINE##*[ :=]}
            _reelcache reelcache "$word" ""; printf '%s\\n' "${COMPREPLY[@]}"
            """
        return try lines(["--norc", "-c", script], of: .bash)
    }

    /// The function alone, with what zsh would have set; that an editor takes what it adds, `typed` shows.
    private func zshCandidates(_ line: String) throws -> [String] {
        let script = """
            compdef() { }
            compadd() { print -rl -- "${(@)values}" }
            source \(file(.zsh))
            line=\(Self.quoted(line))
            words=("${(z)line}")
            [[ $line == *' ' ]] && words+=('')
            CURRENT=$#words PREFIX=$words[-1]
            _reelcache || true
            """
        return try lines(["-f", "-c", script], of: .zsh)
    }
}
