import HTTPModel

/// The result of reading every cached byte again.
public struct CacheValidation: Codable, Sendable, Equatable {
    /// A resource whose bytes differ from those that were written, or cannot be read.
    public struct Damage: Codable, Sendable, Equatable {
        /// The URL that the resource is cached under, as in `CachedResource`.
        public package(set) var urlText: String
        /// The number of damaged chunks, and the bytes they cover.
        package var chunks: Int
        package var spans: [ByteSpan]

        private enum CodingKeys: String, CodingKey {
            case chunks, spans
            case urlText = "url"
        }

        init(_ url: String) { (urlText, chunks, spans) = (url, 0, []) }

        /// For tests of programs that show the result. Each argument is the property of the same name.
        public init(urlText: String, ranges: [Range<Int64>]) {
            (self.urlText, chunks, spans) = (urlText, ranges.count, ranges.map(ByteSpan.init))
        }

        /// Compares URLs and damaged bytes.
        public static func == (a: Damage, b: Damage) -> Bool { a.urlText == b.urlText && a.spans == b.spans }

        /// The damaged bytes: half-open ranges, in order.
        public var ranges: [Range<Int64>] { spans.compactMap { Range(from: $0.first, upTo: $0.last +| 1) } }
    }

    /// The number of resources read.
    public var resources = 0
    package var chunks = 0
    /// The number of bytes read.
    public var bytes: Int64 = 0
    /// Resources with bytes that differ from their checksums or cannot be read.
    public var damaged: [Damage] = []
    /// The URLs of cached resources whose files are missing.
    public var missingFiles: [String] = []
    /// The URLs of cached resources with invalid rows in the index.
    public var damagedRows: [String] = []
    /// The number of files that belong to no resource.
    public var orphanedFiles = 0
    /// The disk usage of these files, in bytes.
    public var orphanedBytes: Int64 = 0
    /// Whether the damage was dropped. Dropped bytes are fetched again on demand.
    public var isRepaired = false
    /// Whether everything was read, rather than the reading being ended early.
    package var isComplete = true

    /// Nothing was read.
    public init() {}

    /// Whether no damage was found.
    public var isSound: Bool { damaged.isEmpty && missingFiles.isEmpty && damagedRows.isEmpty && orphanedFiles == 0 }
}
