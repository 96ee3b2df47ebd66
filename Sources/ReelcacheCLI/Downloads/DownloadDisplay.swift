import ArgumentParser
import CachePolicy
import Configuration
import ControlAPI
import Downloads
import Foundation
import Reelcache

/// Shows the progress of downloads while a command waits: on a terminal as lines that are redrawn, elsewhere as a line
/// for each change, with `--json` as an object for each change.
final class DownloadDisplay {
    private let isJSON: Bool
    private let isQuiet: Bool
    private let isDrawn: Bool
    private let mask: URLMask?
    private var block = TerminalBlock(reflows: Terminal.reflows)
    private var drawnAt: ContinuousClock.Instant?
    /// Lines to print above the block when it is next drawn: moving the block for each of thousands of lines would take
    /// longer than the downloads do.
    private var held: [String] = []

    /// - Parameter mask: masks secrets in URLs; nil to mask nothing.
    init(isJSON: Bool, isQuiet: Bool = false, mask: URLMask? = nil) {
        (self.isJSON, self.isQuiet, self.mask) = (isJSON, isQuiet, mask)
        isDrawn = !isQuiet && Terminal.drawingSize != nil && !(isJSON && Terminal.isOne(STDOUT_FILENO))
        StandardOutput.useLines()
    }

    // MARK: Lines

    /// - Parameters:
    ///   - isError: whether a failed download is a failure of this command.
    ///   - remark: to append to the line.
    func show(_ report: Download, _ change: FollowedDownloads.Change, isError: Bool, remark: String = "") {
        guard change != .nothing else { return }
        if isJSON { event("download", report) }
        guard change == .state, let line = report.line(now: Self.now).map({ $0 + remark }) else { return }
        if isError && (report.state == .failed || report.state == .cancelled) {
            warn(line)
        } else if !(isDrawn && (report.state == .downloading || report.state == .waiting)) {
            say(line)
        }
    }

    /// Prints a line of text, unless standard output carries JSON.
    func say(_ line: String) {
        guard !isJSON && !isQuiet else { return }
        let line = mask?.masked(line) ?? line
        if block.widths.isEmpty { print(line) } else { held.append(line) }
    }

    /// Prints a line on standard error.
    func warn(_ line: String) {
        clear()
        Terminal.writeError("reelcache: \(mask?.masked(line) ?? line)")
    }

    /// Prints an object, if standard output carries JSON.
    /// - Parameter name: its member `event`.
    func event(_ name: String, _ members: some Encodable) {
        guard isJSON, let line = try? ControlJSON.line(Event(name: name, members: members)) else { return }
        clear()
        print(String(decoding: mask?.masked(line) ?? line, as: UTF8.self), terminator: "")
    }

    private struct Event<Members: Encodable>: Encodable {
        let name: String
        let members: Members

        private enum Key: CodingKey { case event }

        func encode(to encoder: any Encoder) throws {
            try members.encode(to: encoder)
            var object = encoder.container(keyedBy: Key.self)
            try object.encode(name, forKey: .event)
        }
    }

    /// Runs a command's work. With `--json`, why it ends is a line of JSON like those before it, too.
    /// - Parameter configuration: read first, so that secrets in errors are masked as it says.
    static func run(
        isJSON: Bool, isQuiet: Bool = false, _ secret: SecretOptions,
        _ configuration: @autoclosure () throws -> ProxyConfiguration,
        _ body: (DownloadDisplay, ProxyConfiguration) throws -> Void
    ) throws {
        var mask: URLMask? = .standard
        do {
            let configuration = try configuration()
            mask = try secret.mask(configuration)
            try body(DownloadDisplay(isJSON: isJSON, isQuiet: isQuiet, mask: mask), configuration)
        } catch {
            if isJSON { printAsJSON(error, mask) }
            throw error
        }
    }

    private static func printAsJSON(_ error: any Error, _ mask: URLMask?) {
        guard !(error is ExitCode) else { return }
        let text =
            (error as? SettingsError)?.lines.joined(separator: "\n") ?? (error as? any AdvisedError)?.text(in: .flags)
            ?? "\(error)"
        guard let line = try? ControlJSON.line(Event(name: "error", members: ["error": text])) else { return }
        print(String(decoding: mask?.masked(line) ?? line, as: UTF8.self), terminator: "")
    }

    // MARK: Drawing

    private static let interval = Duration.milliseconds(100)

    /// Draws the downloads, though not more often than people can read.
    func draw(_ followed: FollowedDownloads, note: String? = nil) {
        guard isDrawn, drawnAt.map({ .now - $0 > Self.interval }) ?? true, let size = Terminal.drawingSize else {
            return
        }
        if !held.isEmpty { clear() }
        // The last column stays free: terminals differ in what happens behind it.
        let screen = DownloadScreen(
            width: size.columns - 1, height: size.rows - 1, isUnicode: Terminal.isUnicode, now: Self.now, mask: mask)
        Terminal.write(block.show(screen.lines(followed, note: note), columns: size.columns))
        drawnAt = .now
    }

    func clear() {
        if !block.widths.isEmpty { Terminal.write(block.clear(columns: Terminal.columnsOfErrors)) }
        for line in held { print(line) }
        held = []
    }

    static var now: Int64 { Int64(time(nil)) }
}
