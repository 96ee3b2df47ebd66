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
    /// In bytes; a longer file was not written by this program.
    private static let longest: UInt64 = 64 << 20

    /// - Parameter directory: the cache directory.
    package init(directory: String, logger: Logger) { (path, self.logger) = ("\(directory)/\(Self.name)", logger) }

    /// None if there is no file, or if it cannot be read.
    package func read() -> MediaAliases {
        do {
            let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? UInt64 ?? 0
            guard size <= Self.longest else { throw CocoaError(.fileReadTooLarge) }
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            return MediaAliases(try JSONDecoder().decode([MediaAliases.Entry].self, from: bytes))
        } catch {
            if access(path, F_OK) == 0 {
                logger.warning("\(path) cannot be read, so pages that share their media are fetched again: \(error)")
            }
            return MediaAliases()
        }
    }

    /// Replaces the file. Blocks.
    /// - Parameter aliases: read when no other thread writes.
    package func write(_ aliases: () -> MediaAliases) { writing.withLock { _ in replace(with: aliases()) } }

    private func replace(with aliases: MediaAliases) {
        let new = path + ".new"
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            try encoder.encode(aliases.stored).write(to: URL(fileURLWithPath: new))
            // URLs may contain secrets.
            guard chmod(new, 0o600) == 0, rename(new, path) == 0 else {
                throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
            }
        } catch {
            logger.warning("\(path) cannot be written, so pages that share their media are fetched again: \(error)")
        }
    }
}
