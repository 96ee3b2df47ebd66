import Administration
import Configuration
import ControlAPI
import DiskCache
@preconcurrency import Foundation
import HTTPModel
import LocalFiles
import Reelcache

/// How a command ends that could not do what it was asked.
enum Failure {
    /// Says why on standard error and exits.
    /// - Parameters:
    ///   - lines: one for each that is printed.
    ///   - code: 1 failed, 2 wrong usage.
    ///   - isPrefixed: whether the lines say already that it is an error.
    ///   - isJSON: whether standard output is to tell it as well, as an object.
    ///   - missing: what is not cached, where that is the reason.
    static func exit(
        _ lines: [String], code: Int32 = 1, isPrefixed: Bool = false, isJSON: Bool = false, missing: [ByteSpan]? = nil
    ) -> Never {
        for line in lines { Terminal.writeError(isPrefixed ? line : "reelcache: \(line)") }
        if isJSON, let text = try? ControlJSON.pretty(Report(error: lines.joined(separator: "\n"), missing: missing)) {
            print(text)
        }
        Foundation.exit(code)
    }

    private struct Report: Encodable {
        let error: String
        let missing: [ByteSpan]?
    }

    /// The one place where what a command throws becomes lines and an exit code.
    static func exit(_ error: any Error, isJSON: Bool) -> Never {
        switch error {
        case let error as ProxyError: exit([error.text(in: .flags)], isJSON: isJSON)
        case let error as CacheAccessError: exit([error.text(in: .flags)], isJSON: isJSON, missing: error.missing)
        case let error as FileError: exit([error.description], isJSON: isJSON)
        // A setting that cannot work is wrong usage, whoever said it; a file that cannot be read is a failure.
        case let error as SettingsError: exit(error.lines, code: error.isUsage ? 2 : 1, isJSON: isJSON)
        default:
            // Usage errors are 2 everywhere (DESIGN section 10); `--help` and `--version` are none.
            let text = Main.fullMessage(for: error)
            exit(
                text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init), code: 2,
                isPrefixed: true, isJSON: isJSON)
        }
    }
}

private extension SettingsError {
    var isUsage: Bool { if case .invalid = self { true } else { false } }
}

/// Standard output.
enum StandardOutput {
    /// For a command that runs on. Each line goes out at once, also into a pipe: whoever started this command may wait
    /// for it.
    static func useLines() {
        setvbuf(stdout, nil, _IOLBF, 0)
    }

    /// Brings out what was printed, or fails: a disk that is full must not make a short list of a long one.
    static func finish() {
        errno = 0
        guard fflush(stdout) == 0, ferror(stdout) == 0 else {
            Failure.exit([
                "cannot write to standard output" + (errno == 0 ? "" : ": \(String(errno: errno))")
            ])
        }
    }
}
