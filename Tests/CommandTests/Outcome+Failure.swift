import TestSupport

extension ChildProcess.Outcome {
    /// What a command that failed says: `nil` unless it exited with 1, nothing on standard output, and one line on standard error.
    var failureLine: String? {
        guard exit == .exited(1), stdout == "", stderr.hasPrefix("reelcache: "), stderr.hasSuffix("\n") else { return nil }
        return stderr.dropLast().contains("\n") ? nil : String(stderr.dropLast())
    }
}
