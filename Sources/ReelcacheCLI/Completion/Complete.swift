import ArgumentParser
import Foundation

/// Answers completion scripts: lists the values that fit at the cursor. Gives up after half a second.
struct Complete: HelpReader {
    enum Shell: String, ExpressibleByArgument, CaseIterable { case bash, zsh, fish }

    static let configuration = CommandConfiguration(
        commandName: "complete", abstract: "Answer a completion script.", shouldDisplay: false)

    @Argument(help: "The shell to answer.")
    var shell: Shell
    @Argument(
        parsing: .postTerminator,
        help:
            "For bash, the line up to the cursor and the word to replace; for other shells, the words without the program's name."
    )
    var words: [String] = []

    /// Overrides the limit, in microseconds, for tests on a busy machine.
    private static let patienceVariable = "REELCACHE_COMPLETION_PATIENCE"

    /// Ends the process without output if the disk keeps it, and with it the shell, waiting for too long.
    /// - Returns: the seconds of one request to the proxy, so that there is time left to read what else is there.
    private static func limitTime() -> Double {
        let chosen = ProcessInfo.processInfo.environment[patienceVariable].flatMap(Int.init)
        let microseconds = min(max(1, chosen ?? 500_000), 60_000_000)
        signal(SIGALRM) { _ in _exit(0) }
        var timer = itimerval()
        // no trap: bounded above
        timer.it_value = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
        setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &timer, nil)
        return Double(microseconds) / 2_000_000
    }

    func run(help: String) throws {
        let tree = try CommandTree(dump: help.utf8)
        switch shell {
        case .bash:
            guard words.count == 2 else { return }
            let line = BashLine(words[0], replacing: words[1])
            answer(CompletionPlace(in: tree, words: line.words, current: line.current)) { line.reply($0.value) }
        case .zsh, .fish:
            let current = words.last ?? ""
            let typed = shell == .fish ? ShellReader(word: current).text : current
            answer(CompletionPlace(in: tree, words: words.dropLast(), current: typed)) { candidate in
                [candidate.value, candidate.note].compactMap { $0 }.joined(separator: "\t")
            }
        }
    }

    private func answer(_ place: CompletionPlace, _ text: (Candidate) -> String?) {
        var names: [Candidate] = []
        switch place.source {
        case .files: return print("files\t\(place.lead)\t\(place.typed)".prefix { shell == .fish || $0 != "\t" })
        case .directories:
            return print("directories\t\(place.lead)\t\(place.typed)".prefix { shell == .fish || $0 != "\t" })
        case .known(let kind):
            let patience = Self.limitTime()
            names = KnownNames(rawValue: kind)?.candidates(for: place, within: patience) ?? []
        case .candidates: break
        }
        let lines = place.matches(names).compactMap(text).filter { !$0.contains("\n") }
        print((["words"] + lines).joined(separator: "\n"))
    }
}
