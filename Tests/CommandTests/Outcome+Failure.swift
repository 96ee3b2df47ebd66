import TestSupport

extension ChildProcess.Outcome {
    /// What a command that failed says: `nil` unless it exited with 1, nothing on standard output, and one line on
    /// standard error.
    var failureLine: String? { stdout == "" ? errorLine : nil }

    /// - Parameter isJSON: whether it was run with `--json`. Then an object on standard output says the same.
    func failureLine(isJSON: Bool) -> String? {
        guard isJSON else { return failureLine }
        guard let line = errorLine, let error = try? members["error"] as? String, line == "reelcache: \(error)" else {
            return nil
        }
        return line
    }

    private var errorLine: String? {
        guard exit == .exited(1), stderr.hasPrefix("reelcache: "), stderr.hasSuffix("\n") else { return nil }
        return stderr.dropLast().contains("\n") ? nil : String(stderr.dropLast())
    }
}
