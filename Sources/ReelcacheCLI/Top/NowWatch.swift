import Administration
import CLinux
import ControlAPI
import Foundation
import HTTPModel
import Reelcache
import Synchronization

/// Watches the proxy of a cache on a thread of its own, and looks for it again when it has ended.
final class NowWatch: Sendable {
    /// What is known at a moment.
    enum News: Sendable {
        case now(NowReport)
        /// The connection is lost, and why.
        case lost(String)
        /// The outcome of an action, in one line.
        case outcome(String)
    }

    private let cacheDirectory: String
    private let state = Mutex(State())
    /// Readable when there is news.
    let descriptor: Int32
    private let wakeUp: Int32

    private struct State {
        /// The latest state replaces one that nobody has read.
        var latest: News?
        var outcomes: [News] = []
        var isOver = false
    }

    /// How long to wait before the proxy is looked for again, in seconds.
    private static let retrySeconds: UInt32 = 1
    /// Outcomes that nobody has read; a person does not press keys faster than they are drawn.
    private static let mostOutcomes = 10

    /// - Throws: `ControlError` if the process has no descriptor left.
    init(cacheDirectory: String) throws {
        self.cacheDirectory = cacheDirectory
        var ends: [Int32] = [-1, -1]
        guard reel_pipe(&ends) == 0 else { throw ControlError("no pipe can be created: \(String(errno: errno))") }
        (descriptor, wakeUp) = (ends[0], ends[1])
        for end in ends where fcntl(end, F_SETFL, O_NONBLOCK) != 0 {
            throw ControlError("a pipe blocks: \(String(errno: errno))")
        }
    }

    deinit { for end in [descriptor, wakeUp] { close(end) } }

    func start() { Thread.detachNewThread { [self] in run() } }

    func end() { state.withLock { $0.isOver = true } }

    /// The news since the last call.
    func take() -> [News] {
        var buffer = [UInt8](repeating: 0, count: 64)
        while read(descriptor, &buffer, buffer.count) > 0 {}
        return state.withLock { state in
            defer { (state.latest, state.outcomes) = (nil, []) }
            return state.outcomes + (state.latest.map { [$0] } ?? [])
        }
    }

    /// Does something through the proxy, on a thread of its own.
    /// - Parameter work: returns what has been done, in one line.
    func perform(_ work: @escaping @Sendable (RunningProxy) throws -> String) {
        Thread.detachNewThread { [self] in
            let line: String
            do {
                guard let proxy = RunningProxy(cacheDirectory: cacheDirectory) else { throw Self.noProxy }
                line = try work(proxy)
            } catch let error as ControlError {
                line = error.text(in: .flags)
            } catch {
                line = "\(error)"
            }
            publish(.outcome(line))
        }
    }

    private static let noProxy = ControlError("no proxy is running")

    private var isOver: Bool { state.withLock { $0.isOver } }

    private func run() {
        while !isOver {
            do {
                guard let proxy = RunningProxy(cacheDirectory: cacheDirectory) else { throw Self.noProxy }
                try proxy.watchNow(isWanted: { !self.isOver }) { report in
                    self.publish(.now(report))
                    return !self.isOver
                }
            } catch let error as ControlError {
                publish(.lost(error.text(in: .flags)))
            } catch {
                publish(.lost("\(error)"))
            }
            if !isOver { sleep(Self.retrySeconds) }
        }
    }

    private func publish(_ news: News) {
        state.withLock { state in
            if case .outcome = news {
                state.outcomes = state.outcomes.suffix(Self.mostOutcomes - 1) + [news]
            } else {
                state.latest = news
            }
        }
        var byte: UInt8 = 1
        // A full pipe wakes the reader as well.
        _ = write(wakeUp, &byte, 1)
    }
}
