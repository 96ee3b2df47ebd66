import ArgumentParser
import Reelcache

@main
struct Main: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reelcache",
        abstract:
            "A local cache for video and audio: players are pointed at it, and what they read once comes from the disk.",
        version: Proxy.version,
        subcommands: [
            Serve.self, Play.self, URLCommand.self, Prefetch.self, DownloadsCommand.self, History.self, Stats.self,
            List.self,
            Show.self, Pin.self, Unpin.self, Remove.self, Export.self, Import.self, Verify.self,
            ConfigCommand.self, DoctorCommand.self, Complete.self,
        ])

    static func main() {
        refuseMendedArguments()
        CompletionScript.printIfRequested()
        do {
            var command = try parseAsRoot()
            do { try command.run() } catch {
                end(error, of: type(of: command), isJSON: (command as? any JSONCommand)?.json ?? false)
            }
            // A proxy has done its work whether or not somebody still reads its first lines.
            if !(command is Serve) { StandardOutput.finish() }
        } catch {
            end(error, of: self, isJSON: false)
        }
    }

    /// - Parameter command: the one whose usage is shown where that was wrong.
    private static func end(_ error: any Error, of command: any ParsableCommand.Type, isJSON: Bool) -> Never {
        if error is ExitCode { StandardOutput.finish() }
        guard exitCode(for: error) != .success, !(error is ExitCode) else { exit(withError: error) }
        // Wrong usage that shows only when a command runs: the parser does not know whose it was.
        if let error = error as? ValidationError {
            Failure.exit(["Error: \(error.message)"] + usage(of: command), code: 2, isPrefixed: true, isJSON: isJSON)
        }
        Failure.exit(error, isJSON: isJSON)
    }

    private static func usage(of command: any ParsableCommand.Type) -> [String] {
        let usage = usageString(for: command)
        let name = usage.split(separator: " ").prefix { word in !["[", "<", "-", "("].contains { word.hasPrefix($0) } }
            .joined(separator: " ")
        return ["Usage: \(usage)", "  See '\(name) --help' for more information."]
    }

    /// Swift mends what is not UTF-8: another file or URL would be meant than the one that was named.
    private static func refuseMendedArguments() {
        for number in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = CommandLine.unsafeArgv[number], String(validatingCString: argument) == nil else {
                continue
            }
            Failure.exit(
                ["'\(String(cString: argument))' is not in UTF-8: rename the file, or percent-encode the URL"], code: 2)
        }
    }
}
