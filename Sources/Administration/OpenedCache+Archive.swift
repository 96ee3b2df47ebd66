import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel

extension OpenedCache {
    package func exportArchive(
        isWanted: @escaping () -> Bool, _ receive: @escaping (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let export = try Self.translated { try store.exportArchive() }
        while let piece = try Self.translated({ try export.next() }) {
            guard isWanted() else { throw CacheAccessError.interrupted }
            try piece.withUnsafeBytes { try receive($0) }
        }
    }

    package func importArchive(
        _ descriptor: Int32, keepsPins: Bool, keepsParts: Bool, isWanted: @escaping (Int64) -> Bool
    )
        -> ArchiveOutcome
    {
        var outcome = ArchiveOutcome(report: ArchiveReport(), error: nil)
        do {
            var options = try archiveOptions()
            (options.keepsPins, options.keepsParts) = (keepsPins, keepsParts)
            let intake = store.importArchive(options)
            do { try Self.translated { try Self.copy(descriptor, to: intake, isWanted) } } catch {
                intake.cancel()
                outcome.error = error as? CacheAccessError ?? CacheAccessError("\(error)")
            }
            outcome.report = intake.report
        } catch { outcome.error = error as? CacheAccessError ?? CacheAccessError("\(error)") }
        return outcome
    }

    private static func copy(_ descriptor: Int32, to intake: ArchiveImport, _ isWanted: (Int64) -> Bool) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var done: Int64 = 0
        while let count = try read(descriptor, into: buffer, isWanted: { isWanted(done) }) {
            try intake.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            done +|= Int64(count)
        }
        _ = try intake.finish()
    }

    /// - Returns: the number of bytes read; nil at the end.
    private static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, isWanted: () -> Bool)
        throws -> Int?
    {
        while true {
            guard isWanted() else { throw CacheAccessError.interrupted }
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0) // no trap: a constant
            let ready = poll(&state, 1, 200)
            if ready == 0 || ready < 0 && errno == EINTR { continue }
            let count = ready < 0 ? -1 : Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
            guard count >= 0 else { throw CacheAccessError("the archive cannot be read: \(String(errno: errno))") }
            return count > 0 ? count : nil
        }
    }

    package func wanted(_ lines: [UInt8], beside claimed: Int64) throws -> WantedGenerations {
        let heads = try lines.split(separator: ASCII.lineFeed).map { try ArchiveHead(line: $0) }
        let options = try archiveOptions()
        return WantedGenerations(try Self.translated { try store.wanted(heads, beside: claimed, options) })
    }

    private func archiveOptions() throws -> ArchiveOptions {
        guard let downloads = try knownDownloads() else { return ArchiveOptions() }
        let policy = policy
        return ArchiveOptions { downloads.isDownloading($0, policy) }
    }
}
