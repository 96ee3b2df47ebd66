import Activity
import CLinux
import CachePolicy
import Dispatch
import EventIO
import Glibc
import HTTPModel
import HTTPTransport
import Logging
import Synchronization

/// The access log: one line for each request, in a file or on standard output.
///
/// Loops put their records into a bounded queue; a thread turns them into lines, masks secrets in URLs, and writes
/// them. If the disk, or the reader of the pipe, is slower than the players, records are dropped and counted
/// (`access-log`), so that no player waits for the log. Changing or closing the log does not wait either: lines that
/// cannot be written at once are dropped too.
final class AccessLog: AccessRecorder {
    private struct Queue {
        var records: [AccessRecord] = []
        var isDrained = true
    }

    private let waiting = Mutex(Queue())
    /// The destination of the lines. Changed and used on `thread` only, so that no line is cut in two.
    private let output = Mutex<Output?>(nil)
    /// Whether what was written last is the beginning of a line. Used on `thread` only.
    private let isCut = Atomic(false)
    /// Used on `thread` only.
    private let kept = Mutex<Lines?>(nil)
    private let thread = DispatchQueue(label: "reelcache.access-log", qos: .utility)
    private let isOpen = Atomic(false)
    private let policy: Current<ProxyPolicy>
    private let metrics: ProxyMetrics
    /// Readable while a caller waits for `thread`, which then does not wait for its destination.
    private let hurry: Int32

    /// The form of lines written from now on.
    let format: Current<AccessLogFormat>

    /// The most waiting records.
    private static let capacity = 8192

    private struct Output {
        let path: String
        let descriptor: Int32
    }

    /// - Throws: `ProxyError` if this process cannot open more files.
    init(_ policy: Current<ProxyPolicy>, _ format: AccessLogFormat, metrics: ProxyMetrics) throws(ProxyError) {
        self.format = Current(format)
        self.policy = policy
        self.metrics = metrics
        hurry = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard hurry >= 0 else {
            throw .tooFewFiles("cannot create an event descriptor: \(String(errno: errno))")
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

    /// Changes the destination. Blocks.
    /// - Parameter path: `-` for standard output; nil for none.
    /// - Throws: `ProxyError` if the file cannot be written; then nothing changes.
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
            // A new file; a pipe is the one that it was, and has no offset.
            if let new, lseek(new.descriptor, 0, SEEK_END) == 0 { isCut.store(false, ordering: .relaxed) }
            isOpen.store(new != nil, ordering: .relaxed)
        }
    }

    /// Reopens the file under its name, after the old one was renamed. Blocks.
    /// - Throws: `ProxyError` if it cannot be opened; then the old file stays in use.
    func reopen() throws(ProxyError) {
        guard let path = output.withLock({ $0?.path }), path != ProxyConfiguration.standardOutput else { return }
        try open(path)
    }

    /// Writes the waiting records, as far as that is possible without waiting, and closes the log.
    func close() { try? open(nil) }

    private static func open(_ path: String) throws(ProxyError) -> Output {
        guard path != ProxyConfiguration.standardOutput else { return Output(path: path, descriptor: STDOUT_FILENO) }
        // 0600, because the log tells what was watched. Nonblocking, so that opening a named pipe does not wait.
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            let reason = errno == ENXIO ? "no process reads this pipe" : String(errno: errno)
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
            var lines = currentLines()
            for record in records {
                lines.add(record)
                if lines.bytes.count > Self.longestPiece { write(&lines, to: output.descriptor) }
            }
            write(&lines, to: output.descriptor)
            kept.withLock { $0 = lines }
        }
    }

    /// A client chooses how long lines are, and there may be thousands.
    private static let longestPiece = 256 << 10

    private func write(_ lines: inout Lines, to descriptor: Int32) {
        write(lines.bytes, to: descriptor)
        lines.bytes.removeAll(keepingCapacity: lines.bytes.capacity <= 2 * Self.longestPiece)
    }

    /// The lines as they were left, or new ones if their form or the names of secrets have changed since.
    private func currentLines() -> Lines {
        let version = (policy.version, format.version)
        if let lines = kept.withLock({ $0.take() }), lines.version == version { return lines }
        return Lines(format.value, policy.value.mask, version)
    }

    private func write(_ lines: [UInt8], to descriptor: Int32) {
        let text = isCut.load(ordering: .relaxed) ? [ASCII.lineFeed] + lines : lines
        var rest = text[...]
        defer {
            if let last = text.dropLast(rest.count).last { isCut.store(last != ASCII.lineFeed, ordering: .relaxed) }
        }
        while !rest.isEmpty {
            guard isTaken(descriptor) else { return metrics.errors.add("access-log") }
            // poll(2): a pipe accepts this much without waiting, even if it is not nonblocking, as standard output
            // is shared with other processes.
            let count = rest.prefix(Self.pipeBuffer).withUnsafeBytes {
                reel_write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
            guard count > 0 else { return metrics.errors.add("access-log") }
            rest = rest.dropFirst(count)
        }
    }

    /// PIPE_BUF, pipe(7).
    private static let pipeBuffer = 4096

    /// Waits until the descriptor is writable.
    /// - Returns: false if it is not writable now, and a caller waits for this thread.
    private func isTaken(_ descriptor: Int32) -> Bool {
        while true {
            var entries = [
                pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: hurry, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&entries, 2, -1)
            if count < 0 && errno == EINTR { continue }
            // Errors show up in the write.
            if count < 0 || entries[0].revents != 0 { return true }
            if entries[1].revents != 0 { return false }
        }
    }
}
