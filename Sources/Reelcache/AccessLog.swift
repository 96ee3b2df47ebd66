import CachePolicy
import Dispatch
import Glibc
import HTTPTransport
import Logging
import Metrics
import Synchronization

/// The access log: one line of JSON for each request, in a file or on standard output.
///
/// Loops leave their records in a bounded queue; a thread of its own makes lines of them, masks what is secret in URLs, and writes. Where the disk is
/// slower than the players, records are dropped and counted (`access-log`): no player waits for a log.
final class AccessLog: AccessRecorder {
    private struct Queue {
        var records: [AccessRecord] = []
        var isDrained = true
    }

    private let waiting = Mutex(Queue())
    /// Where lines go. Changed and used on `thread` alone, so that no line is cut in two.
    private let output = Mutex<Output?>(nil)
    private let thread = DispatchQueue(label: "reelcache.access-log", qos: .utility)
    private let isOpen = Atomic(false)
    private let policy: Current<ProxyPolicy>
    private let metrics: ProxyMetrics

    /// Records that wait at the most.
    private static let capacity = 8192

    private struct Output {
        let path: String
        let descriptor: Int32
    }

    init(_ policy: Current<ProxyPolicy>, metrics: ProxyMetrics) {
        self.policy = policy
        self.metrics = metrics
    }

    var isOn: Bool { isOpen.load(ordering: .relaxed) }

    func record(_ record: AccessRecord) {
        let isFirst = waiting.withLock { queue in
            guard queue.records.count < Self.capacity else {
                metrics.errors.add("access-log")
                return false
            }
            queue.records.append(record)
            defer { queue.isDrained = false }
            return queue.isDrained
        }
        if isFirst { thread.async { self.drain() } }
    }

    // MARK: The file

    /// Writes there from now on. Blocks.
    /// - Parameter path: `-` for standard output; nil for nowhere.
    /// - Throws: `ProxyError` where it cannot be written; then all stays as it was.
    func open(_ path: String?) throws(ProxyError) {
        let new: Output? = if let path { try Self.open(path) } else { nil }
        thread.sync {
            drain()
            let old = output.withLock { output in
                defer { output = new }
                return output
            }
            if let old, old.descriptor > STDERR_FILENO { Glibc.close(old.descriptor) }
            isOpen.store(new != nil, ordering: .relaxed)
        }
    }

    /// Goes on in a new file of the same name, after somebody has renamed the old one. Blocks.
    /// - Throws: `ProxyError` where there can be none; then it goes on in the old one.
    func reopen() throws(ProxyError) {
        guard let path = output.withLock({ $0?.path }), path != Self.standardOutput else { return }
        try open(path)
    }

    /// Writes what waits, and no more. Blocks.
    func close() { try? open(nil) }

    static let standardOutput = "-"

    private static func open(_ path: String) throws(ProxyError) -> Output {
        guard path != standardOutput else { return Output(path: path, descriptor: STDOUT_FILENO) }
        // It tells what was watched.
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ProxyError("cannot write the access log \(path): \(String(cString: strerror(errno)))") }
        return Output(path: path, descriptor: descriptor)
    }

    // MARK: On the thread

    private func drain() {
        while true {
            let records = waiting.withLock { queue in
                defer { queue.records = [] }
                queue.isDrained = queue.records.isEmpty
                return queue.records
            }
            guard !records.isEmpty else { return }
            guard let output = output.withLock({ $0 }) else { continue }
            let mask = policy.value.mask
            write(records.flatMap { mask.masked($0.line) }, to: output.descriptor)
        }
    }

    private func write(_ lines: [UInt8], to descriptor: Int32) {
        var rest = lines[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return metrics.errors.add("access-log") }
            rest = rest.dropFirst(count)
        }
    }
}
