import DiskCache
import HTTPModel

/// What reading everything again has found.
public struct CacheValidation: Sendable, Equatable {
    /// A resource with bytes that are not what was written.
    public struct Damage: Sendable, Equatable {
        /// What the resource is cached under, as in `CachedResource`.
        public let urlText: String
        /// Which bytes: half-open ranges, in order.
        public let ranges: [Range<Int64>]

        /// For tests of programs that show what was found. Each value is that of the property of its name.
        public init(urlText: String, ranges: [Range<Int64>]) {
            self.urlText = urlText
            self.ranges = ranges
        }
    }

    /// How many resources were read.
    public let resources: Int
    /// How many bytes were read.
    public let bytes: Int64
    /// Resources whose bytes differ from their checksums or cannot be read.
    public let damaged: [Damage]
    /// What resources are cached under whose file is gone.
    public let missingFiles: [String]
    /// What resources are cached under of which the index has what cannot be.
    public let damagedRows: [String]
    /// How many files belong to no resource.
    public let orphanedFiles: Int
    /// What these take on the disk, in bytes.
    public let orphanedBytes: Int64
    /// Whether what was found was dropped; it is fetched again when it is wanted.
    public let isRepaired: Bool

    /// Whether nothing was found.
    public var isSound: Bool { damaged.isEmpty && missingFiles.isEmpty && damagedRows.isEmpty && orphanedFiles == 0 }

    /// For tests of programs that show what was found. Each value is that of the property of its name.
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
