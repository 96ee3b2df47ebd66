import Administration
import Configuration
import ControlAPI
import DiskCache
@preconcurrency import Foundation
import HTTPModel
import Reelcache

/// How a command that failed ends.
enum Failure {
    /// Prints the reason on standard error and exits.
    /// - Parameters:
    ///   - lines: to print.
    ///   - code: 1 failed, 2 wrong usage.
    ///   - isPrefixed: whether the lines already say that this is an error.
    ///   - isJSON: whether to print the error as an object on standard output, too.
    ///   - missing: what is not cached, if that is the reason.
    static func exit(
        _ lines: [String], code: Int32 = 1, isPrefixed: Bool = false, isJSON: Bool = false, missing: [ByteSpan]? = nil
    ) -> Never {
        for line in lines { Terminal.writeError(isPrefixed ? line : "reelcache: \(line)") }
        if isJSON, let text = try? ControlJSON.pretty(Report(error: lines.joined(separator: "\n"), missing: missing)) {
            print(text)
        }
        Interruption.endBySignal()
        Foundation.exit(code)
    }

    private struct Report: Encodable {
        let error: String
        let missing: [ByteSpan]?
    }

    /// The one place that turns a command's error into lines and an exit code.
    /// - Parameter message: the parser's, for errors that only it knows.
    static func exit(_ error: any Error, isJSON: Bool, message: @autoclosure () -> String) -> Never {
        switch error {
        case let error as ProxyError: exit([error.text(in: .flags)], isJSON: isJSON)
        case let error as ControlError: exit([error.text(in: .flags)], isJSON: isJSON, missing: error.missing)
        case let error as FileError: exit([error.description], isJSON: isJSON)
        // A bad setting is wrong usage, wherever it comes from; a file that cannot be read is a failure.
        case let error as SettingsError: exit(error.lines, code: error.isUsage ? 2 : 1, isJSON: isJSON)
        default:
            // Usage errors exit with 2 everywhere; `--help` and `--version` are not errors.
            exit(
                message().split(separator: "\n", omittingEmptySubsequences: false).map(String.init), code: 2,
                isPrefixed: true, isJSON: isJSON)
        }
    }
}

private extension SettingsError {
    var isUsage: Bool { if case .invalid = self { true } else { false } }
}

/// Standard output.
enum StandardOutput {
    /// For a command that keeps running: writes each line at once, also into a pipe, because a program may be waiting for
    /// it.
    static func useLines() {
        setvbuf(stdout, nil, _IOLBF, 0)
    }

    /// Writes out what was printed, or fails: a full disk must not silently shorten a list.
    static func finish() {
        errno = 0
        guard fflush(stdout) == 0, ferror(stdout) == 0 else {
            Failure.exit([
                "cannot write to standard output" + (errno == 0 ? "" : ": \(String(errno: errno))")
            ])
        }
    }
}
