import HTTPModel

/// Why the media of a URL could not be located, in one line that names the resolver.
package enum ResolverFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The program cannot be run, for this reason of the system's.
    case cannotStart(String, reason: String)
    /// It ran for longer than its `timeout`, in seconds.
    case timedOut(String, after: Double)
    /// It ended with this exit code, and with this as the last line of its standard error.
    case exited(String, code: Int32, lastLine: String)
    /// This signal ended it.
    case killed(String, signal: Int32)
    /// It wrote more than it may, in bytes.
    case tooLong(String, limit: Int)
    /// Its output is not understood.
    case unusable(String, reason: String)
    /// The origin refused the address with this status as soon as it was known.
    case refused(String, status: Int, retryAfter: Int64)
    /// Too many other URLs wait for their resolvers.
    case busy
    /// The cache is being closed.
    case closing

    package var description: String {
        switch self {
        case .cannotStart(let name, let reason):
            "the resolver \(name) cannot be started: \(reason); install it, or name its path in resolvers"
        case .timedOut(let name, let seconds):
            "the resolver \(name) took longer than \(Self.text(seconds)) s; raise its timeout in resolvers"
        case .exited(let name, let code, let line):
            "the resolver \(name) failed with exit code \(code)" + (line.isEmpty ? "" : ": \(line)")
        case .killed(let name, let signal): "the resolver \(name) was ended by signal \(signal)"
        case .tooLong(let name, let limit):
            "the resolver \(name) printed more than \(limit / 1024) KiB; let it print less, such as one line with the URL"
        case .unusable(let name, let reason): "the resolver \(name) \(reason)"
        case .refused(let name, let status, let seconds):
            "the origin answered \(status) to the address that \(name) gave; it will be resolved again in \(seconds) s"
        case .busy: "too many other pages are being resolved; try again in a moment"
        case .closing: "the cache is being closed"
        }
    }

    private static func text(_ seconds: Double) -> String {
        seconds == seconds.rounded() ? "\(Int(saturating: seconds))" : "\(seconds)"
    }

    /// Whether it ran out of time.
    package var isTimeout: Bool { if case .timedOut = self { true } else { false } }

    /// Whether the same command may succeed a little later.
    package var isTransient: Bool {
        switch self {
        case .timedOut, .exited, .killed, .refused, .busy: true
        case .cannotStart, .tooLong, .unusable, .closing: false
        }
    }
}
