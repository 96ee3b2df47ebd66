import Foundation

/// Runs `body` on a new thread that nobody joins.
/// - Parameter stack: stack size in bytes.
/// - Throws: `SystemError` when the system has no thread left.
func startThread(stack: Int = 256 * 1024, _ body: @escaping @Sendable () -> Void) throws {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setstacksize(&attributes, stack)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    let box = Unmanaged.passRetained(ThreadBody(body))
    var thread = pthread_t()
    let code = pthread_create(
        &thread, &attributes,
        { argument in
            Unmanaged<ThreadBody>.fromOpaque(argument!).takeRetainedValue().run()
            return nil
        }, box.toOpaque())
    if code != 0 {
        box.release()
        throw SystemError("pthread_create", code)
    }
}

private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
        self.run = run
    }
}

/// A blocking computation on a thread of its own, begun when this is made; `value()` is its result.
///
///     let first = try Background { try RawClient.get(port: port, path: "/a.mp4") }
///     try origin.waitForRequests("/a.mp4", count: 1)
///     origin.release("/a.mp4")
///     #expect(try first.value().status == 200)
package final class Background<Value: Sendable>: Sendable {
    private let result = Monitor<Result<Value, any Error>?>(nil)
    /// Its directory in `/proc`.
    private let thread = Monitor<String?>(nil)

    package init(_ body: @escaping @Sendable () throws -> Value) throws {
        try startThread(stack: 2 * 1024 * 1024) { [result, thread] in
            let place = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
            thread.update { $0 = place }
            let outcome = Result(catching: body)
            result.update { $0 = outcome }
        }
    }

    /// Waits for the end and returns the value.
    /// - Throws: what the body threw; `DeadlinePassed` when it has not ended.
    package func value(within patience: Duration = .patience) throws -> Value {
        try result.wait(for: "a background thread's end", within: patience) { $0 }.get()
    }

    /// Returns when the thread waits, for a lock that the caller has, or has ended.
    package func waitUntilItWaits() throws {
        try eventually("a background thread that waits") {
            let stat = thread.read { $0 }.flatMap { try? String(contentsOfFile: "/proc/\($0)/stat", encoding: .utf8) }
            return isFinished || stat?.contains(") S ") == true
        }
    }

    /// Whether the body has returned or thrown.
    package var isFinished: Bool { result.read { $0 != nil } }
}

/// Runs `body(0)` to `body(n - 1)`, which may block, on `n` threads at once, and returns their values in that order.
/// - Throws: the error of the lowest index that threw, when all have ended; `DeadlinePassed` when one has not.
package func concurrently<T: Sendable>(
    _ n: Int, within patience: Duration = .patience, _ body: @escaping @Sendable (Int) throws -> T
) throws -> [T] {
    let end = ContinuousClock.now + patience
    let runs = try (0..<n).map { index in try Background { try body(index) } }
    let results = runs.map { run in Result { try run.value(within: end - .now) } }
    return try results.map { try $0.get() }
}

/// Runs the blocking `body` on a thread of its own and suspends until it ends. An async test blocks by this and not
/// directly: a few blocked tests would take every thread of Swift's pool, and the code under test may need one.
package func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        do {
            try startThread(stack: 2 * 1024 * 1024) { continuation.resume(with: Result(catching: body)) }
        } catch {
            continuation.resume(throwing: error)
        }
    }
}

/// Runs the blocking `body` on threads of its own, as a part of the calling task: other than on a `Background` thread,
/// an `#expect` in it knows which test it belongs to.
package func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withTaskExecutorPreference(ThreadExecutor()) { try body() }
}

/// Runs each part of a task on a new thread.
private final class ThreadExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        do {
            _ = try Background { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        } catch { fatalError("no thread for a test: \(error)") }
    }
}
