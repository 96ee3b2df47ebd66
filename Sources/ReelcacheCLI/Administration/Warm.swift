import Administration
import ArgumentParser
import CachePolicy
import DiskCache
import Foundation
import HTTPModel
import Reelcache

struct Warm: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fill the cache from another Reelcache.",
        discussion: """
            Copies what the other cache has and this one lacks, what was played last first, and asks no origin. Run it \
            again to continue, or to catch up: what is there already is not sent again. Nothing that was played later is \
            evicted to make room; pins stay where they are.

            The other cache wants a token unless it is on this machine: the contents of its file control-token-read, or \
            control-token. With the former, media whose URLs have secrets are left out.

              reelcache warm --from http://tv-2:7335 --token-file tv-2.token --rate 50MB
              reelcache warm --from http://127.0.0.1:7336 --newest 200GB
            """)

    @Option(
        name: .customLong("from"), help: ArgumentHelp("The address of the other Reelcache.", valueName: "url"))
    var node: String
    @Option(
        help: ArgumentHelp("Read the other cache's token from this file.", valueName: "file"), completion: .file())
    var tokenFile: String?
    @Option(
        help: ArgumentHelp("Receive at most this many bytes per second, such as 50MB.", valueName: "rate"),
        transform: DownloadArgument.rate)
    var rate: Int64?
    @Option(
        help: ArgumentHelp(
            "Copy only this much of what the other cache played last, such as 200GB. (default: everything)",
            valueName: "size"), transform: DownloadArgument.size)
    var newest: Int64?
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var secret: SecretOptions
    @OptionGroup var cache: CacheOptions

    private struct Report: Encodable {
        let report: ArchiveReport
        let listed: Int
        let present: Int
        let leftOut: Int
        let receivedBytes: Int64
        let listBytes: Int64
        let error: String?
    }

    func validate() throws { _ = try address }

    /// Without a final slash.
    private var address: String {
        get throws {
            guard let url = try? OriginURL(url: node), url.pathAndQuery == "/" else {
                throw ValidationError(
                    "--from '\(node)' is not the address of a Reelcache: write it like http://cache-2:7335")
            }
            return url.scheme.rawValue + "://" + url.authority
        }
    }

    func run() throws {
        let interruption = Interruption()
        let other = ArchiveNode(try address, token: try token)
        let configuration = try cache.configuration, display = WarmDisplay()
        let result = try configuration.withCache(isFilled: true, isWanted: { !interruption.isWished }) { access in
            WarmUp(other, access, rate: rate, newest: newest) { progress in
                display.show(progress)
                return !interruption.isWished
            }.run()
        }
        display.clear()
        try print(result, configuration, isPaused: interruption.isWished)
    }

    private var token: String? {
        get throws {
            guard let tokenFile else { return nil }
            let text = String(decoding: try CommandFile.bytes(of: tokenFile).prefix(1000), as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            guard !text.isEmpty, text.utf8.allSatisfy({ ASCII.hexValue($0) != nil }) else {
                throw CacheAccessError(
                    "\(tokenFile) does not contain a token: copy the other cache's control-token-read")
            }
            return text
        }
    }

    private func print(_ result: WarmUp.Result, _ configuration: ProxyConfiguration, isPaused: Bool) throws {
        guard result.error == nil || isPaused || result.report.imported > 0 else { throw result.error! }
        let failure = result.error?.text(in: .flags)
        if json {
            let report = Report(
                report: result.report, listed: result.listed, present: result.unwanted, leftOut: result.leftOut,
                receivedBytes: result.received, listBytes: result.listBytes, error: failure)
            Swift.print(try secret.json(report, configuration))
        } else {
            for line in lines(result) { Swift.print(line) }
        }
        guard let failure else { return }
        let line = isPaused ? "paused: run it again to continue" : "\(failure); run it again to continue"
        Terminal.writeError("reelcache: \(try secret.shown(line, configuration))")
        throw ExitCode(result.report.imported > 0 ? 3 : 1)
    }

    private func lines(_ result: WarmUp.Result) -> [String] {
        var lines = [ArchiveText.line("copied", result.report)]
        if result.unwanted > 0 { lines.append("\(result.unwanted.of("resource")) there already, or newer") }
        if result.leftOut > 0 {
            lines.append(
                "\(result.leftOut.of("resource")) left out, because their URLs have secrets: use its control-token")
        }
        return lines
    }
}

/// The progress of `warm`: a line that is redrawn on a terminal, or else a line every ten seconds.
private final class WarmDisplay {
    private let line = ProgressLine()
    private let isTerminal = Terminal.isOne(STDERR_FILENO)
    private var shownAt = ContinuousClock.now
    private var shown: Int64 = 0

    func show(_ progress: WarmUp.Progress) {
        if isTerminal {
            if let total = progress.total {
                line.show("warm", progress.received, of: total)
            } else {
                line.show("warm: looked at \(progress.listed.of("resource"))")
            }
        } else if .now - shownAt > .seconds(10), progress.received > shown {
            (shownAt, shown) = (.now, progress.received)
            Terminal.writeError("warm: \(progress.received.size)\(progress.total.map { " of \($0.size)" } ?? "")")
        }
    }

    func clear() { line.clear() }
}
