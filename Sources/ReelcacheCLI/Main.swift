import ArgumentParser
import Reelcache

@main
struct Main: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reelcache",
        abstract:
            "Cache video and audio: players read through a local proxy, and what was read once comes from the disk.",
        discussion: """
            Run the proxy, and give players the URLs that reelcache url prints:

              reelcache serve
              mpv "$(reelcache url https://example.org/film.mp4)"

            The other commands use the running proxy if there is one; otherwise they open the cache directly.
            """,
        version: Proxy.version,
        subcommands: [
            Serve.self, Play.self, URLCommand.self, Prefetch.self, FeedsCommand.self, DownloadsCommand.self,
            History.self, DashboardCommand.self, Top.self, Stats.self,
            List.self,
            Show.self, Pin.self, Unpin.self, Remove.self, Export.self, Import.self, Verify.self,
            ConfigCommand.self, Reload.self, DoctorCommand.self, Generate.self, Complete.self,
        ])

    static func main() {
        refuseInvalidUTF8()
        printVersionIfRequested()
        CompletionScript.printIfRequested()
        do {
            let line = CommandWords(Array(CommandLine.arguments.dropFirst()))
            if let problem = line.problem(in: self) { throw ValidationError(problem) }
            var command = try parseAsRoot(line.words)
            do { try run(&command) } catch {
                end(error, of: type(of: command), isJSON: (command as? any JSONCommand)?.json ?? false)
            }
            // A proxy has done its work whether or not its first lines were read.
            if !(command is Serve) { StandardOutput.finish() }
        } catch {
            end(error, of: self, isJSON: false)
        }
    }

    private static func run(_ command: inout any ParsableCommand) throws {
        guard let reader = command as? any HelpReader else { return try command.run() }
        try reader.run(help: _dumpHelp())
    }

    /// The parser's own `--version` prints one line, and knows no `--verbose`.
    private static func printVersionIfRequested() {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.contains("--version"), Set(arguments).isSubset(of: ["--version", "--verbose"]) else { return }
        let text = VersionText(build: .current)
        print(arguments.contains("--verbose") ? text.verbose : text.short)
        StandardOutput.finish()
        exit(withError: ExitCode.success)
    }

    /// - Parameter command: the one whose usage is shown if it was used wrongly.
    private static func end(_ error: any Error, of command: any ParsableCommand.Type, isJSON: Bool) -> Never {
        if error is ExitCode { StandardOutput.finish() }
        guard exitCode(for: error) != .success, !(error is ExitCode) else {
            if exitCode(for: error) != .success { Interruption.endBySignal() }
            exit(withError: error)
        }
        // Wrong usage that only a running command detects: the parser does not know whose usage to show.
        if let error = error as? ValidationError {
            Failure.exit(["Error: \(error.message)"] + usage(of: command), code: 2, isPrefixed: true, isJSON: isJSON)
        }
        Failure.exit(error, isJSON: isJSON, message: fullMessage(for: error))
    }

    private static func usage(of command: any ParsableCommand.Type) -> [String] {
        let usage = usageString(for: command)
        let name = usage.split(separator: " ").prefix { word in !["[", "<", "-", "("].contains { word.hasPrefix($0) } }
            .joined(separator: " ")
        return ["Usage: \(usage)", "  See '\(name) --help' for more information."]
    }

    /// Swift repairs arguments that are not UTF-8, and would then use another file or URL than the one named.
    private static func refuseInvalidUTF8() {
        for number in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = CommandLine.unsafeArgv[number], String(validatingCString: argument) == nil else {
                continue
            }
            Failure.exit(
                ["'\(String(cString: argument))' is not UTF-8: rename the file, or percent-encode the URL"], code: 2)
        }
    }
}
