import DiskCache
import HTTPModel

/// The result of reading every cached byte again.
public struct CacheValidation: Sendable, Equatable {
    /// A resource whose bytes differ from those that were written.
    public struct Damage: Sendable, Equatable {
        /// The URL that the resource is cached under, as in `CachedResource`.
        public let urlText: String
        /// The damaged bytes: half-open ranges, in order.
        public let ranges: [Range<Int64>]

        /// For tests of programs that show the result. Each argument is the property of the same name.
        public init(urlText: String, ranges: [Range<Int64>]) {
            self.urlText = urlText
            self.ranges = ranges
        }
    }

    /// The number of resources read.
    public let resources: Int
    /// The number of bytes read.
    public let bytes: Int64
    /// Resources with bytes that differ from their checksums or cannot be read.
    public let damaged: [Damage]
    /// The URLs of cached resources whose files are missing.
    public let missingFiles: [String]
    /// The URLs of cached resources with invalid rows in the index.
    public let damagedRows: [String]
    /// The number of files that belong to no resource.
    public let orphanedFiles: Int
    /// The disk usage of these files, in bytes.
    public let orphanedBytes: Int64
    /// Whether the damage was dropped. Dropped bytes are fetched again on demand.
    public let isRepaired: Bool

    /// Whether no damage was found.
    public var isSound: Bool { damaged.isEmpty && missingFiles.isEmpty && damagedRows.isEmpty && orphanedFiles == 0 }

    /// For tests of programs that show the result. Each argument is the property of the same name.
    public init(
        resources: Int = 0, bytes: Int64 = 0, damaged: [Damage] = [], missingFiles: [String] = [],
        damagedRows: [String] = [], orphanedFiles: Int = 0,
        orphanedBytes: Int64 = 0, isRepaired: Bool = false
    ) {
        (self.resources, self.bytes, self.damaged) = (resources, bytes, damaged)
        (self.missingFiles, self.damagedRows) = (missingFiles, damagedRows)
        (self.orphanedFiles, self.orphanedBytes, self.isRepaired) = (orphanedFiles, orphanedBytes, isRepaired)
    }

    init(_ report: ScrubReport) {
        self.init(
            resources: report.resources, bytes: report.bytes,
            damaged: report.damaged.map {
                Damage(urlText: $0.url, ranges: $0.spans.compactMap { Range(from: $0.first, upTo: $0.last +| 1) })
            },
            missingFiles: report.missingFiles, damagedRows: report.damagedRows, orphanedFiles: report.orphanedFiles,
            orphanedBytes: report.orphanedBytes, isRepaired: report.isRepaired)
    }
}
