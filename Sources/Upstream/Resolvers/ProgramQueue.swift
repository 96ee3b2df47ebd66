import CachePolicy
import Dispatch
import EventIO
import Foundation
import HTTPModel
import Logging
import Synchronization

/// Runs programs that are told of what has happened, one after the other, on a thread that ends when it has no work.
/// They run as resolvers do: without a shell, input or files of this process, and for a limited time.
package final class ProgramQueue: Sendable {
    /// One run of a program.
    package struct Run: Sendable {
        /// For the log, such as the setting that names the program.
        let name: String
        let command: [String]
        /// Added to the variables that resolvers get.
        let variables: [String: String]

        package init(_ name: String, _ command: [String], _ variables: [String: String]) {
            (self.name, self.command, self.variables) = (name, command, variables)
        }
    }

    private struct Waiting {
        var runs: [Run] = []
        var hasThread = false
        var isClosed = false
    }

    /// The most that wait; the longest run, and the longest wait for all at the end, in seconds; the longest output.
    private static let (mostWaiting, longestRun, farewell, longestOutput) = (1000, 300.0, 30.0, 1 << 20)

    private let waiting = Mutex(Waiting())
    private let isEnding = Atomic(false)
    private let threads = DispatchGroup()
    private let logger: Logger

    package init(_ logger: Logger) { self.logger = logger }

    /// Runs a program after those that wait already. Does not block.
    package func run(_ run: Run) {
        let (isTaken, startsThread) = waiting.withLock { waiting in
            guard !waiting.isClosed, waiting.runs.count < Self.mostWaiting else { return (false, false) }
            defer { waiting.hasThread = true }
            waiting.runs.append(run)
            return (true, !waiting.hasThread)
        }
        guard isTaken else { return warn(run, "is not run: too many wait already") }
        guard startsThread else { return }
        threads.enter()
        guard DetachedThread.start("hook", { self.work() }) != 0 else { return }
        waiting.withLock { $0.hasThread = false }
        threads.leave()
        warn(run, "waits: no thread can be started")
    }

    /// Lets those that wait run for half a minute at most, and ends them then. Blocks.
    package func close() {
        waiting.withLock { $0.isClosed = true }
        guard threads.wait(timeout: .now() + Self.farewell) == .timedOut else { return }
        isEnding.store(true, ordering: .relaxed)
        for run in waiting.withLock({ Self.takeAll(&$0.runs) }) { warn(run, "is not run: the cache is closing") }
        threads.wait()
    }

    private static func takeAll(_ runs: inout [Run]) -> [Run] {
        defer { runs = [] }
        return runs
    }

    private func work() {
        while let run = waiting.withLock({ waiting -> Run? in
            waiting.hasThread = !waiting.runs.isEmpty
            return waiting.runs.isEmpty ? nil : waiting.runs.removeFirst()
        }) {
            if let failure = failure(of: run) { warn(run, failure) }
        }
        threads.leave()
    }

    private func warn(_ run: Run, _ what: String) {
        let program = run.command.first.map { $0.split(separator: "/").last ?? "" } ?? ""
        logger.warning("\(run.name): \(String(program).printable) \(what)")
    }

    /// Why it failed; nil if it didn't.
    private func failure(of run: Run) -> String? {
        let program: SpawnedProgram
        do throws(SpawnedProgram.StartError) {
            let own = ResolverEnvironment.variables(of: ProcessInfo.processInfo.environment)
            program = try SpawnedProgram(run.command, environment: own.merging(run.variables) { $1 })
        } catch {
            return "cannot be run: \(error)"
        }
        let end = program.collect(
            upTo: Self.longestOutput, within: Self.longestRun, isCancelled: { isEnding.load(ordering: .relaxed) })
        switch (end.reason, end.status) {
        case (.tooLong, _): return "was ended: it printed more than \(ByteSize(bytes: Int64(Self.longestOutput)))"
        case (.timedOut, _): return "was ended after \(Int(Self.longestRun)) s" // no trap: a constant
        case (.cancelled, _): return "was ended: the cache is closing"
        case (.ended, .exited(0)), (.ended, .unknown): return nil
        case (.ended, .killed(let signal)): return "was ended by signal \(signal)"
        case (.ended, .exited(let code)):
            let line = ResolverCommand.lastLine(of: end.errors)
            return "ended with \(code)" + (line.isEmpty ? "" : ": \(line)")
        }
    }
}
