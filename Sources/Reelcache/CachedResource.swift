import DiskCache
import Foundation

/// A cached resource in a listing.
public struct CachedResource: Sendable, Equatable, Identifiable {
    /// What it is cached under: its URL in its normal form, unless a rule gives it another key. Exact, as `URL` may
    /// write it otherwise.
    public let urlText: String
    /// Its bytes, cached or not.
    public let length: Int64
    /// How many of them are cached.
    public let cachedBytes: Int64
    /// Whether it is kept from being evicted.
    public let isPinned: Bool
    /// How many requests were answered from it.
    public let hits: Int64
    /// When it was last read or downloaded.
    public let lastRead: Date
    /// When its first byte was stored.
    public let stored: Date
    /// `Content-Type`, such as `video/mp4`, where the origin named one.
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
    /// Its URL; nil where `URL` cannot hold it.
    public var url: URL? { URL(string: urlText) }
    /// Whether all of it is cached.
    public var isComplete: Bool { cachedBytes == length }

    /// The order of a listing.
    public enum Order: Sendable, CaseIterable {
        /// Most cached bytes first.
        case size
        /// Last read first.
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
