import CachePolicy
import CLinux
import Dispatch
import EventIO
import Glibc
import HTTPModel
import HTTPTransport
import Logging
import Metrics
import Synchronization

/// The access log: one line of JSON for each request, in a file or on standard output.
///
/// Loops leave their records in a bounded queue; a thread of its own makes lines of them, masks what is secret in URLs,
/// and writes. Where the disk, or whoever reads the pipe, is slower than the players, records are dropped and counted
/// (`access-log`): no player waits for a log. Nor does whoever changes or closes it: what nobody takes by then is
/// dropped too.
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
    /// Readable while somebody waits for `thread`: what it writes to is not waited for then.
    private let hurry: Int32

    /// Records that wait at the most.
    private static let capacity = 8192

    private struct Output {
        let path: String
        let descriptor: Int32
    }

    /// - Throws: `ProxyError` where this process can have no more files open.
    init(_ policy: Current<ProxyPolicy>, metrics: ProxyMetrics) throws(ProxyError) {
        self.policy = policy
        self.metrics = metrics
        hurry = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard hurry >= 0 else {
            throw .tooFewFiles("cannot make an event descriptor: \(String(errno: errno))")
        }
    }

    deinit {
        output.withLock { Self.close($0) }
        Glibc.close(hurry)
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
        eventfd_write(hurry, 1)
        thread.sync {
            drain()
            var count: eventfd_t = 0
            eventfd_read(hurry, &count)
            let old = output.withLock { output in
                defer { output = new }
                return output
            }
            Self.close(old)
            isOpen.store(new != nil, ordering: .relaxed)
        }
    }

    /// Goes on in a new file of the same name, after somebody has renamed the old one. Blocks.
    /// - Throws: `ProxyError` where there can be none; then it goes on in the old one.
    func reopen() throws(ProxyError) {
        guard let path = output.withLock({ $0?.path }), path != ProxyConfiguration.standardOutput else { return }
        try open(path)
    }

    /// Writes what waits, as far as that is taken at once, and no more.
    func close() { try? open(nil) }

    private static func open(_ path: String) throws(ProxyError) -> Output {
        guard path != ProxyConfiguration.standardOutput else { return Output(path: path, descriptor: STDOUT_FILENO) }
        // It tells what was watched. A named pipe is not waited for.
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            let reason = errno == ENXIO ? "nobody reads this pipe" : String(errno: errno)
            throw .disk("cannot write the access log \(path): \(reason)")
        }
        return Output(path: path, descriptor: descriptor)
    }

    private static func close(_ output: Output?) {
        if let output, output.descriptor > STDERR_FILENO { Glibc.close(output.descriptor) }
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
            guard isTaken(descriptor) else { return metrics.errors.add("access-log") }
            // poll(2): so much a pipe takes without waiting, also where it is not non-blocking, as standard output is
            // shared with others.
            let count = rest.prefix(Self.pipeBuffer).withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
            guard count > 0 else { return metrics.errors.add("access-log") }
            rest = rest.dropFirst(count)
        }
    }

    /// PIPE_BUF, pipe(7).
    private static let pipeBuffer = 4096

    /// Waits until something can be written.
    /// - Returns: false where that is not now, and somebody waits for this thread.
    private func isTaken(_ descriptor: Int32) -> Bool {
        while true {
            var entries = [
                pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: hurry, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&entries, 2, -1)
            if count < 0 && errno == EINTR { continue }
            // Errors show in the write.
            if count < 0 || entries[0].revents != 0 { return true }
            if entries[1].revents != 0 { return false }
        }
    }
}
