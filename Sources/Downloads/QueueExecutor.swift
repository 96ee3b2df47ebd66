@preconcurrency import Dispatch

/// Runs an actor on a dispatch queue: its work may block without taking a thread from Swift's pool, and other threads
/// can enter it.
package final class QueueExecutor: SerialExecutor {
    package let queue: DispatchQueue

    package init(label: String) { queue = DispatchQueue(label: label) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    package func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
