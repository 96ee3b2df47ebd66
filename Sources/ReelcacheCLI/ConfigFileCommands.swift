import Administration
import ArgumentParser
import Configuration
import ControlAPI
import Foundation
import Reelcache

struct ConfigInit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Create a configuration file with every setting and its default.",
        discussion: "All settings are comments at first. A file that is there stays as it is.")

    @OptionGroup var cache: CacheOptions

    func run() throws {
        let path = cache.sources().ownFile
        guard try Self.create(path, Data(SampleFile().text.utf8)) else {
            throw ControlError("\(path) is there already; change it with reelcache config edit")
        }
        print("created \(path): change it with reelcache config edit")
    }

    /// Creates a file that only its owner may read, as it may hold passwords.
    /// - Returns: false if it is there already.
    static func create(_ path: String, _ text: Data) throws -> Bool {
        guard !FileManager.default.fileExists(atPath: path) else { return false }
        do {
            try FileManager.default.createDirectory(
                atPath: FileExport.directory(of: path), withIntermediateDirectories: true)
        } catch {
            throw ControlError("cannot create \(path): \(error.localizedDescription)")
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        guard descriptor >= 0 else {
            throw ControlError("cannot create \(path): \(String(cString: strerror(errno)))")
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do { try file.write(contentsOf: text) } catch {
            unlink(path)
            throw ControlError("cannot write \(path): \(error.localizedDescription)")
        }
        return true
    }
}

struct ConfigEdit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Edit the configuration file with $VISUAL or $EDITOR, and check it.",
        discussion: """
            Creates the file if there is none. If you may not change the one that applies, such as the system's, your \
            own begins as a copy of it, and applies to your commands from then on. A running proxy takes up the \
            changes with reelcache reload.
            """)

    @OptionGroup var cache: CacheOptions

    func run() throws {
        let sources = cache.sources(), environment = ProcessInfo.processInfo.environment
        let path = try Self.file(sources)
        let editor = [environment["VISUAL"], environment["EDITOR"]].compactMap(\.self).first { !$0.isEmpty } ?? "vi"
        // As git runs it: the variable may have arguments. The shell stays when an editor such as ed gets Ctrl-C.
        let process = try ForegroundProcess(
            "/bin/sh", ["-c", "trap : INT QUIT; \(editor) \"$1\"", editor, path], environment: environment,
            signals: ForegroundSignals(), orElse: "set EDITOR")
        guard process.waitForEnd() == 0 else { throw ControlError("\(editor) has failed: set EDITOR") }
        let report = ConfigurationReport(path, sources: sources)
        print(report.lines.joined(separator: "\n"))
        if !report.ok { throw ExitCode(1) }
        if let proxy = RunningProxy(cacheDirectory: try cache.path), proxy.reloads,
            proxy.configurationFile.map(Reload.resolved) == Reload.resolved(path)
        {
            print("the running proxy takes it up with reelcache reload")
        }
    }

    /// The file that applies if the user may change it, otherwise the user's own.
    private static func file(_ sources: SettingSources) throws -> String {
        let files = FileManager.default
        if let path = sources.standardPaths.first(where: { files.fileExists(atPath: $0) }), !sources.namesFile,
            path != sources.ownFile
        {
            if files.isWritableFile(atPath: path) { return path }
            let text = files.contents(atPath: path) ?? Data(SampleFile().text.utf8)
            if try ConfigInit.create(sources.ownFile, text) { print("\(sources.ownFile) begins as a copy of \(path)") }
        } else {
            _ = try ConfigInit.create(sources.ownFile, Data(SampleFile().text.utf8))
        }
        return sources.ownFile
    }
}

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Have the running proxy read its configuration again.",
        discussion: """
            The file that the proxy reads is checked first. The log of the proxy says what has changed, and which \
            settings need a restart.
            """)

    @OptionGroup var cache: CacheOptions

    func run() throws {
        let sources = cache.sources()
        let own = try Self.checkedFile(nil, sources), directory = try cache.path
        guard let proxy = RunningProxy(cacheDirectory: directory), !proxy.isBrief else {
            throw ControlError("no proxy is running for the cache \(directory); start one with reelcache serve")
        }
        guard proxy.reloads else {
            throw ControlError(
                """
                the proxy at \(proxy.baseURL) (process \(proxy.processID)) does not read its configuration again, \
                because it is not reelcache serve: restart it
                """)
        }
        let read = proxy.configurationFile
        if let own, read.map(Self.resolved) != Self.resolved(own) {
            let differs = "the proxy reads \(read ?? "no file"), not \(own)"
            Terminal.writeError("reelcache: \(differs): restart it with --config to change that")
        }
        let file = try read.flatMap { try Self.checkedFile($0, sources) }
        guard kill(proxy.processID, SIGHUP) == 0 else {
            throw ControlError("cannot signal process \(proxy.processID): \(String(cString: strerror(errno)))")
        }
        let checked = file.map { "\($0) is valid; " } ?? ""
        print("\(checked)the proxy (process \(proxy.processID)) reads its configuration again: see its log")
    }

    /// The file, if it has no mistakes.
    /// - Parameter path: nil for the one that the command line means.
    private static func checkedFile(_ path: String?, _ sources: SettingSources) throws -> String? {
        let report = ConfigurationReport(path, sources: sources)
        guard report.ok else {
            print(report.lines.joined(separator: "\n"))
            throw ExitCode(1)
        }
        return report.file
    }

    static func resolved(_ path: String) -> String {
        URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    }
}
