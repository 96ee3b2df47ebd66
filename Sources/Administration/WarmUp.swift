import DiskCache
import Foundation
import HTTPModel
import Synchronization

/// Fills a cache from another node: reads its list, asks the own cache what of it is wanted, and imports archives of
/// that, a batch at a time. A connection that breaks costs a chunk, or a resource without a strong validator, at most.
package final class WarmUp {
    package struct Progress {
        /// Bytes that the other node has of what is wanted; nil while its list is read.
        package var total: Int64?
        /// Bytes that have come.
        package var received: Int64 = 0
        /// Resources of its list so far.
        package var listed = 0
    }

    package struct Result {
        package var report = ArchiveReport()
        package var received: Int64 = 0
        /// Bytes of lists.
        package var listBytes: Int64 = 0
        /// Resources of the list.
        package var listed = 0
        /// Of these, the ones that were there already, or newer.
        package var unwanted = 0
        /// Resources that the token does not permit to read.
        package var leftOut = 0
        /// Why it did not come to its end.
        package var error: CacheAccessError?
    }

    private struct Wanted {
        let selection: ArchiveSelection
        let bytes: Int64
    }

    private let node: ArchiveNode
    private let cache: any CacheAccess
    private let newest: Int64?
    private let isWanted: (Progress) -> Bool
    private var pace: TransferPace
    private var progress = Progress()
    private var result = Result()
    /// As much as the cache can hold at most, because it is asked for all of it together.
    private var wanted: [Wanted] = []
    /// The room that these take.
    private var claimed: Int64 = 0

    /// A batch has at most so many resources and, unless it is a single one, bytes.
    private static let batch = (resources: 64, bytes: 256 << 20 as Int64)
    /// So often in a row, nothing may come of an attempt.
    private static let mostAttempts = 6
    /// More resources than a node can have: it sends a list without an end.
    private static let mostListed = 1 << 27

    /// - Parameters:
    ///   - rate: bytes per second; nil for no limit.
    ///   - newest: only so many bytes of what the node read last; nil for all.
    ///   - isWanted: called at least four times a second; false ends it.
    package init(
        _ node: ArchiveNode, _ cache: any CacheAccess, rate: Int64?, newest: Int64?,
        isWanted: @escaping (Progress) -> Bool
    ) {
        (self.node, self.cache, self.newest, self.isWanted) = (node, cache, newest, isWanted)
        pace = TransferPace(rate: rate)
    }

    package func run() -> Result {
        do {
            try repeating { try readList() }
            progress.total = wanted.reduce(0) { $0 +| $1.bytes }
            try importAll()
        } catch { result.error = error as? CacheAccessError ?? CacheAccessError("\(error)") }
        (result.received, result.listed) = (progress.received, progress.listed)
        return result
    }

    private var isStillWanted: () -> Bool { { [self] in isWanted(progress) } }

    /// Repeats what fails for a reason that may pass, with pauses that grow unless something was imported.
    private func repeating(_ body: () throws -> Void) throws {
        var attempts = WarmUpAttempts(most: Self.mostAttempts)
        while true {
            let before = result.report.bytes
            do { return try body() } catch let error as ArchiveNode.Broken {
                guard let wait = attempts.pause(hasProgressed: result.report.bytes > before) else {
                    throw CacheAccessError(error.reason)
                }
                try pause(seconds: wait)
            }
        }
    }

    private func pause(seconds: Double) throws {
        let end = ContinuousClock.now + .seconds(seconds)
        while .now < end {
            guard isWanted(progress) else { throw CacheAccessError.interrupted }
            usleep(50_000)
        }
    }

    // MARK: The list

    private func readList() throws {
        (wanted, claimed, progress.listed, result.unwanted, result.report) = ([], 0, 0, 0, ArchiveReport())
        var bytes: Int64 = 0
        let end = try node.list(nil, isWanted: isStillWanted) { [self] lines in
            result.listBytes +|= Int64(lines.count)
            var (heads, taken): ([ArchiveHead], [UInt8]) = ([], [])
            for line in lines.split(separator: ASCII.lineFeed) {
                guard let head = try? ArchiveHead(line: line) else {
                    throw CacheAccessError("\(node.url) sends a list that cannot be read: it may be another version")
                }
                bytes +|= max(0, head.cached)
                if let newest, bytes > newest { break }
                heads.append(head)
                taken += line + [ASCII.lineFeed]
            }
            if !heads.isEmpty { try note(heads, taken) }
            return newest.map { bytes <= $0 } ?? true
        }
        result.leftOut = end?.leftOut ?? 0
    }

    private func note(_ heads: [ArchiveHead], _ lines: [UInt8]) throws {
        progress.listed += heads.count
        guard progress.listed < Self.mostListed else {
            throw CacheAccessError("\(node.url) sends a list without an end: it may be another program")
        }
        let answer = try cache.wanted(lines, beside: claimed), names = Set(answer.generations)
        // The names are in the next request's URL: the cache has found that they have the right form.
        let more = heads.compactMap { head -> Wanted? in
            guard names.contains(head.generation), let id = GenerationID(fileName: head.generation) else { return nil }
            let start = answer.starts[head.generation] ?? 0
            return Wanted(selection: ArchiveSelection(id, from: start), bytes: max(0, head.cached -| start))
        }
        claimed +|= answer.bytes
        result.report.noRoom += answer.noRoom
        result.unwanted += max(0, heads.count - more.count - answer.noRoom)
        wanted += more
    }

    // MARK: Archives

    private func importAll() throws {
        var rest = wanted[...]
        while !rest.isEmpty {
            var batch: [Wanted] = [], bytes: Int64 = 0
            while let next = rest.first, batch.count < Self.batch.resources,
                batch.isEmpty || bytes +| next.bytes <= Self.batch.bytes
            {
                batch.append(next)
                bytes +|= next.bytes
                rest.removeFirst()
            }
            try importBatch(batch.map(\.selection))
        }
    }

    private func importBatch(_ batch: [ArchiveSelection]) throws {
        var left = batch
        var isFirst = true
        try repeating {
            // After a break, some of them are there, and others have changed.
            if !isFirst { left = try stillWanted(left) }
            isFirst = false
            guard !left.isEmpty else { return }
            try importOnce(left.map(\.description))
        }
    }

    private func stillWanted(_ batch: [ArchiveSelection]) throws -> [ArchiveSelection] {
        let names = batch.map(\.id.description)
        var (left, claimed): ([ArchiveSelection], Int64) = ([], 0)
        _ = try node.list(names, isWanted: isStillWanted) { [self] lines in
            let answer = try cache.wanted(lines, beside: claimed)
            for name in answer.generations where names.contains(name) {
                if let id = GenerationID(fileName: name) {
                    left.append(ArchiveSelection(id, from: answer.starts[name] ?? 0))
                }
            }
            claimed +|= answer.bytes
            result.report.noRoom += answer.noRoom
            return true
        }
        return left
    }

    private func importOnce(_ generations: [String]) throws {
        let channel = try ImportChannel()
        let intake = Intake(cache, channel.output)
        let broken = Swift.Result {
            defer { channel.endInput() }
            try node.archive(generations, isWanted: isStillWanted) { [self] bytes in
                progress.received +|= Int64(bytes.count)
                try wait(for: pace.delay(after: bytes.count, now: .now))
                return try channel.write(bytes, isWanted: isStillWanted)
            }
        }
        let outcome = intake.wait(isWanted: isStillWanted)
        result.report = result.report + outcome.report
        // The import's own error comes second: an archive that broke off is cut.
        try broken.get()
        if let error = outcome.error { throw error }
    }

    private func wait(for delay: Duration) throws {
        let end = ContinuousClock.now + delay
        while ContinuousClock.now < end {
            guard isWanted(progress) else { throw CacheAccessError.interrupted }
            usleep(20_000)
        }
    }
}

/// How often something is tried that fails for a reason that may pass. A value.
struct WarmUpAttempts {
    /// So many failures in a row, without progress, are the end.
    let most: Int
    private var failures = 0

    init(most: Int) { self.most = most }

    /// An attempt has failed.
    /// - Parameter hasProgressed: whether the next one has less to do.
    /// - Returns: seconds until the next attempt; nil if there is none.
    mutating func pause(hasProgressed: Bool) -> Double? {
        failures = hasProgressed ? 1 : failures + 1
        // no trap: shifted by 4 at most
        return failures < most ? Double(1 << min(failures - 1, 4)) / 2 : nil
    }
}

/// Keeps a transfer to a rate: after each piece, the time is due at which that many bytes may have come. A value.
struct TransferPace {
    let rate: Int64?
    private var due: ContinuousClock.Instant?
    /// Time that was not used counts for a quarter of a second.
    private static let memory = Duration.milliseconds(250)

    init(rate: Int64?) { self.rate = rate }

    /// - Returns: how long to wait before the next piece.
    mutating func delay(after bytes: Int, now: ContinuousClock.Instant) -> Duration {
        guard let rate, rate > 0 else { return .zero }
        let start = max(due ?? now, now - Self.memory)
        due = start + .seconds(Double(bytes) / Double(rate))
        return max(.zero, (due ?? now) - now)
    }
}

/// Two connected sockets: unlike to a pipe, one can write to them without a signal when the reader is gone.
final class ImportChannel {
    let output: Int32
    private var input: Int32

    init() throws {
        var ends: [Int32] = [0, 0]
        // no trap: constants
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw CacheAccessError("cannot make a channel to the cache: \(String(errno: errno))")
        }
        (input, output) = (ends[0], ends[1])
    }

    deinit {
        endInput()
        close(output)
    }

    /// - Parameter isWanted: asked while the reader takes nothing; after false, the error is that of an interruption.
    /// - Returns: whether the reader is still there.
    func write(_ bytes: UnsafeRawBufferPointer, isWanted: () -> Bool) throws -> Bool {
        var done = 0
        while done < bytes.count {
            // no trap: constants
            let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
            let count = send(input, bytes.baseAddress! + done, bytes.count - done, flags)
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN {
                guard isWanted() else { throw CacheAccessError.interrupted }
                var state = pollfd(fd: input, events: Int16(POLLOUT), revents: 0) // no trap: a constant
                _ = poll(&state, 1, 200)
                continue
            }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }

    func endInput() {
        if input >= 0 { close(input) }
        input = -1
    }
}

/// An import on a thread of its own, while this one receives.
///
/// `@unchecked Sendable` because its creator reads `outcome` only after the thread has ended.
private final class Intake: @unchecked Sendable {
    private var outcome = ArchiveOutcome(report: ArchiveReport(), error: nil)
    private let isOver = DispatchSemaphore(value: 0)
    private let isGivenUp = Atomic(false)
    /// How long an import that was interrupted may take to say what it has done.
    private static let lastWord = Duration.seconds(2)

    init(_ cache: any CacheAccess, _ descriptor: Int32) {
        nonisolated(unsafe) let cache = cache
        Thread.detachNewThread { [self] in
            outcome = cache.importArchive(descriptor, keepsPins: false, keepsParts: true) { [self] _ in
                !isGivenUp.load(ordering: .relaxed)
            }
            // The writer must not wait for a reader that is gone.
            shutdown(descriptor, Int32(SHUT_RD)) // no trap: a constant
            isOver.signal()
        }
    }

    /// - Parameter isWanted: asked now and then; after false, the import ends soon.
    func wait(isWanted: () -> Bool) -> ArchiveOutcome {
        var end: ContinuousClock.Instant?
        while isOver.wait(timeout: .now() + .milliseconds(200)) == .timedOut {
            if end == nil, !isWanted() { end = .now + Self.lastWord }
            if let end, end < .now { isGivenUp.store(true, ordering: .relaxed) }
        }
        return outcome
    }
}
