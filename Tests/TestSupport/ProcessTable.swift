import Foundation

/// What the system knows about processes (proc(5)).
package enum ProcessTable {
    /// The processes that a process with one thread has started and not taken back.
    package static func children(of pid: pid_t) -> [pid_t] {
        let text = try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)
        return (text ?? "").split(separator: " ").compactMap { pid_t($0) }
    }

    /// Whether it has not ended, even if nobody has taken it back.
    package static func isRunning(_ pid: pid_t) -> Bool { state(pid).map { !"ZX".contains($0) } ?? false }

    package static func isStopped(_ pid: pid_t) -> Bool { state(pid) == "T" }

    /// Behind the name, which is in parentheses.
    private static func state(_ pid: pid_t) -> Character? {
        let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
        return text?.split(separator: ") ").last?.first
    }
}
