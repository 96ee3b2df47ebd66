import CXXHash
import CachePolicy
import Foundation
import Glibc
import HTTPModel
import Logging
import Synchronization

/// The file in which the aliases of pages outlast the proxy. Losing it costs no more than fetching media again that is
/// cached under another page's URL.
package final class AliasFile: Sendable {
    private let path: String
    private let logger: Logger
    /// Held while the file is written, by one thread at a time.
    private let writing = Mutex(())

    private static let name = "aliases.json"
    /// What the file contains.
    private struct Content: Codable {
        /// XXH3 of the entries as `encode` writes them, in hexadecimal digits: with one other character, a page would
        /// play the media of another.
        let checksum: String
        let entries: [MediaAliases.Entry]

        init(_ entries: [MediaAliases.Entry]) throws {
            (checksum, self.entries) = (try Self.checksum(of: entries), entries)
        }

        var isIntact: Bool { (try? Self.checksum(of: entries)) == checksum }

        private static func checksum(of entries: [MediaAliases.Entry]) throws -> String {
            let bytes = try AliasFile.encode(entries)
            return String(bytes.withUnsafeBytes { XXH3_64bits($0.baseAddress, $0.count) }, radix: 16)
        }
    }

    /// In bytes; a longer file was not written by this program.
    private static let longest: UInt64 = 64 << 20

    /// - Parameter directory: the cache directory.
    package init(directory: String, logger: Logger) { (path, self.logger) = ("\(directory)/\(Self.name)", logger) }

    /// None if there is no file, or if it cannot be read. A damaged one is set aside, for whoever wants to look at it.
    package func read() -> MediaAliases {
        do {
            let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? UInt64 ?? 0
            guard size <= Self.longest else { throw CocoaError(.fileReadTooLarge) }
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            let content = try JSONDecoder().decode(Content.self, from: bytes)
            guard content.isIntact else { throw CocoaError(.fileReadCorruptFile) }
            return MediaAliases(content.entries)
        } catch {
            guard access(path, F_OK) == 0 else { return MediaAliases() }
            let aside = path + ".damaged", isAside = rename(path, aside) == 0
            logger.warning(
                """
                \(path) cannot be read, so pages that share their media are fetched again\
                \(isAside ? "; it is \(aside) now" : ""): \(error)
                """)
            return MediaAliases()
        }
    }

    /// Replaces the file. Blocks.
    /// - Parameter aliases: read when no other thread writes.
    package func write(_ aliases: () -> MediaAliases) {
        guard let error = writing.withLock({ _ in replace(with: aliases()) }) else { return }
        logger.warning("\(path) cannot be written, so pages that share their media are fetched again: \(error)")
    }

    private func replace(with aliases: MediaAliases) -> (any Error)? {
        let new = path + ".new"
        do {
            let bytes = try Self.encode(try Content(aliases.stored))
            // URLs may contain secrets.
            let descriptor = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            try file.write(contentsOf: bytes)
            // Before the name is that of the new one: a power cut leaves one of the two.
            try file.synchronize()
            try file.close()
            guard rename(new, path) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            return nil
        } catch {
            return error
        }
    }

    private static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(value)
    }
}
