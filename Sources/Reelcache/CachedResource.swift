import DiskCache
import Foundation

/// A cached resource in a listing.
public struct CachedResource: Sendable, Equatable, Identifiable {
    /// The URL that it is cached under: its URL in normal form, unless a rule gives it another key. Exact, whereas
    /// `URL` may write it differently.
    public let urlText: String
    /// The length of the resource, in bytes.
    public let length: Int64
    /// The number of cached bytes.
    public let cachedBytes: Int64
    /// Whether the resource is pinned.
    public let isPinned: Bool
    /// The number of requests answered from it.
    public let hits: Int64
    /// The time when it was last read or downloaded.
    public let lastRead: Date
    /// The time when its first byte was stored.
    public let stored: Date
    /// The `Content-Type`, such as `video/mp4`; nil if the origin did not name one.
    public let contentType: String?

    /// For tests of programs that list what is cached.
    public init(
        urlText: String, length: Int64, cachedBytes: Int64, isPinned: Bool = false, hits: Int64 = 0,
        lastRead: Date = Date(), stored: Date = Date(),
        contentType: String? = nil
    ) {
        self.urlText = urlText
        self.length = length
        self.cachedBytes = cachedBytes
        self.isPinned = isPinned
        self.hits = hits
        self.lastRead = lastRead
        self.stored = stored
        self.contentType = contentType
    }

    init(_ report: ResourceReport) {
        self.init(
            urlText: report.url, length: report.length, cachedBytes: report.cached, isPinned: report.isPinned,
            hits: report.hits,
            lastRead: Date(timeIntervalSince1970: Double(report.lastAccess)),
            stored: Date(timeIntervalSince1970: Double(report.storedAt)),
            contentType: report.type)
    }

    /// The same as `urlText`.
    public var id: String { urlText }
    /// Its URL; nil if `URL` cannot represent it.
    public var url: URL? { URL(string: urlText) }
    /// Whether the whole resource is cached.
    public var isComplete: Bool { cachedBytes == length }

    /// The order of a listing.
    public enum Order: Sendable, CaseIterable {
        /// Most cached bytes first.
        case size
        /// Most recently read first.
        case recent
        /// Most hits first.
        case hits
        /// By URL.
        case name
    }
}

extension ResourceQuery.Order {
    init(_ order: CachedResource.Order) {
        switch order {
        case .size: self = .size
        case .recent: self = .recent
        case .hits: self = .hits
        case .name: self = .name
        }
    }
}
