import Foundation
import HTTPModel

/// A cached resource in a listing. Sizes are in bytes.
public struct CachedResource: Codable, Sendable, Equatable, Identifiable {
    /// The URL that it is cached under: its URL in normal form, unless a rule gives it another key. Exact, whereas
    /// `URL` may write it differently.
    public var urlText: String
    /// The length of the resource.
    public var length: Int64
    /// The number of cached bytes.
    public var cachedBytes: Int64
    /// Whether the whole resource is cached.
    public var isComplete: Bool
    /// Whether the resource is pinned.
    public var isPinned: Bool
    /// The number of requests answered from it, as far as the index knows.
    public var hits: Int64
    /// Seconds since 1970.
    package var lastAccess: Int64
    package var storedAt: Int64
    /// When players had read three quarters of it, the last time; nil before.
    package var played: Int64?
    /// The origin's `Content-Type`, such as `video/mp4`; nil if it did not send one.
    public var contentType: String?
    /// For a presentation, listed under its first playlist: the number of its other resources. Sizes, hits and last
    /// access are then totals, and `isComplete` is false, because only the playlists know what else belongs to it. nil
    /// for anything else.
    package var parts: Int?
    /// The presentation that it is a part of.
    package var partOf: String?
    /// For a presentation whose playlists are cached: how much of it is cached. `isComplete` is then taken from here.
    package var presentation: CachedPresentation?
    /// Its title in its feed or playlist, otherwise the file name that its origin gives; nil if neither is known.
    package var title: String?
    /// The category that its download was ordered under, the last one that named any.
    package var category: String?

    private enum CodingKeys: String, CodingKey {
        case length, isComplete, isPinned, hits, lastAccess, storedAt, played, parts, partOf, presentation, title
        case category
        case urlText = "url", cachedBytes = "cached", contentType = "type"
    }

    /// The order of a listing.
    public enum Order: String, Sendable, CaseIterable {
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

extension CachedResource {
    /// A resource that was stored and read now. Programs that list what is cached make one for their tests, and set
    /// the rest.
    public init(urlText: String, length: Int64, cachedBytes: Int64) {
        let now = Int64(saturating: Date().timeIntervalSince1970)
        self.init(
            urlText: urlText, length: length, cachedBytes: cachedBytes, isComplete: cachedBytes == length,
            isPinned: false, hits: 0, lastAccess: now, storedAt: now)
    }

    /// The same as `urlText`.
    public var id: String { urlText }
    /// Its URL; nil if `URL` cannot represent it.
    public var url: URL? { URL(string: urlText) }

    /// The time when it was last read or downloaded.
    public var lastRead: Date {
        get { Date(timeIntervalSince1970: Double(lastAccess)) }
        set { lastAccess = Int64(saturating: newValue.timeIntervalSince1970) }
    }

    /// The time when its first byte was stored.
    public var stored: Date {
        get { Date(timeIntervalSince1970: Double(storedAt)) }
        set { storedAt = Int64(saturating: newValue.timeIntervalSince1970) }
    }
}
