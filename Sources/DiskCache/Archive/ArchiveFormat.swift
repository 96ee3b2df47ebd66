import CachePolicy
import HTTPModel

/// The form of an archive: resources with what is cached of them, as a stream that is written and read without seeking.
/// `docs/dev/archive-format.md` describes it.
///
///     "reelcache archive 1\n"
///     R length head checksum                            a resource: its head is JSON
///       C ordinal bitmap time checksums… checksum bytes  chunks of one extent, in order; any number of these blocks
///       E bytes digest                                  the end of the resource
///     Z resources bytes checksum                        the end of the archive
///
/// Numbers are little-endian, checksums XXH3 of 64 bits.
package enum ArchiveFormat {
    /// What every archive begins with, whatever its version.
    package static let name = Array("reelcache archive ".utf8)
    static let magic = name + Array("1\n".utf8)

    /// What follows the magic: one byte that says what comes.
    enum Block: UInt8 {
        case resource = 0x52 // R
        case chunks = 0x43 // C
        case endOfResource = 0x45 // E
        case end = 0x5A // Z
    }

    /// Limits the head of a resource, in bytes of JSON.
    static let longestHead = 1 << 20
    /// Chunks are read and sent in pieces of this size; a larger chunk is one piece.
    static let pieceBytes: Int64 = 1 << 20

    /// The head of a block of chunks before its checksums: ordinal, bitmap, time.
    static let chunksHeadBytes = 4 + 8 + 8
}

/// A generation to export: all of it, or its chunks from one byte on. Written `NAME` or `NAME@BYTE`.
package struct ArchiveSelection: Sendable, CustomStringConvertible {
    package let id: GenerationID
    package let start: Int64

    package init(_ id: GenerationID, from start: Int64 = 0) { (self.id, self.start) = (id, start) }

    package init?(_ text: String) {
        let parts = text.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        let start = parts.count == 2 ? ASCII.decimal(parts[1].utf8) : 0
        guard let id = GenerationID(fileName: String(parts[0])), let start else { return nil }
        self.init(id, from: start)
    }

    package var description: String { start > 0 ? "\(id)@\(start)" : "\(id)" }
}

/// Why an archive cannot be imported. The description is one line.
package enum ArchiveError: Error, Sendable, CustomStringConvertible {
    case notAnArchive
    /// A later program wrote it.
    case laterVersion
    /// - Parameters:
    ///   - resource: the URL of the resource in which the damage is; nil between resources.
    ///   - offset: in the archive.
    case damaged(String, resource: String?, offset: Int64)
    /// The archive ends too early.
    case cut(resource: String?, offset: Int64)
    /// The cache could not take it.
    case store(StoreError)

    package var description: String {
        switch self {
        case .notAnArchive: "this is not an archive of a cache: write one with reelcache export --all"
        case .laterVersion: "a later version of Reelcache wrote the archive: import it with that version"
        case .damaged(let reason, let resource, let offset):
            "the archive is damaged at byte \(offset)\(Self.place(resource)): \(reason); \(Self.advice)"
        case .cut(let resource, let offset):
            "the archive is cut short at byte \(offset)\(Self.place(resource)); \(Self.advice)"
        case .store(let error): "\(error)"
        }
    }

    private static func place(_ resource: String?) -> String { resource.map { ", in \($0)" } ?? "" }

    private static let advice = "what comes before stays; import a whole archive to continue"
}
