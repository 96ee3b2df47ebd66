import Administration
import ArgumentParser
import Configuration
import Foundation
import Reelcache

struct ConfigInit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Create a configuration file with every setting and its default.",
        discussion: "All settings are comments at first. A file that is there stays as it is.")

    @OptionGroup var cache: CacheOptions

    func run() throws {
        let path = Self.path(cache)
        guard try Self.create(path) else {
            throw CacheAccessError("\(path) is there already; change it with reelcache config edit")
        }
        print("created \(path): change it with reelcache config edit")
    }

    /// The file that the user's own commands read.
    static func path(_ cache: CacheOptions) -> String {
        cache.sources().ownFile
    }

    /// - Returns: false if it is there already.
    static func create(_ path: String) throws -> Bool {
        guard !FileManager.default.fileExists(atPath: path) else { return false }
        do {
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try Data(SampleFile().text.utf8).write(to: URL(fileURLWithPath: path), options: .withoutOverwriting)
        } catch {
            throw CacheAccessError("cannot create \(path): \(error.localizedDescription)")
        }
        return true
    }
}

struct ConfigEdit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Edit the configuration file with $VISUAL or $EDITOR, and check it.",
        discussion: """
            Creates the file if there is none. A running proxy takes up the changes with reelcache reload.
            """)

    @OptionGroup var cache: CacheOptions

    func run() throws {
        let path = ConfigInit.path(cache), environment = ProcessInfo.processInfo.environment
        _ = try ConfigInit.create(path)
        let editor = [environment["VISUAL"], environment["EDITOR"]].compactMap(\.self).first { !$0.isEmpty } ?? "vi"
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        // As git runs it: the variable may have arguments.
        process.arguments = ["-c", "\(editor) \"$1\"", editor, path]
        do { try process.run() } catch { throw CacheAccessError("cannot run \(editor): \(error.localizedDescription)") }
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CacheAccessError("\(editor) has failed: set EDITOR") }
        let report = ConfigurationReport(path, sources: cache.sources())
        print(report.lines.joined(separator: "\n"))
        if !report.ok { throw ExitCode(1) }
        if RunningProxy(cacheDirectory: try cache.path)?.isBrief == false {
            print("the running proxy takes it up with reelcache reload")
        }
    }
}

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Have the running proxy read its configuration again.",
        discussion: """
            The file is checked first. The log of the proxy says what has changed, and which settings need a restart.
            """)

    @OptionGroup var cache: CacheOptions

    func run() throws {
        let report = ConfigurationReport(nil, sources: cache.sources())
        guard report.ok else {
            print(report.lines.joined(separator: "\n"))
            throw ExitCode(1)
        }
        let directory = try cache.path
        guard let proxy = RunningProxy(cacheDirectory: directory), !proxy.isBrief else {
            throw CacheAccessError("no proxy is running for the cache \(directory); start one with reelcache serve")
        }
        guard kill(proxy.processID, SIGHUP) == 0 else {
            throw CacheAccessError("cannot signal process \(proxy.processID): \(String(cString: strerror(errno)))")
        }
        print("the proxy (process \(proxy.processID)) reads its configuration again; its log says what has changed")
    }
}
