import CachePolicy

/// The limits on playlists. They bound all that is read from a playlist, whatever it declares.
package enum PlaylistLimits {
    /// 32 MiB: a hundred thousand segments with signed addresses of 250 bytes and a tag or two each. Memory is
    /// proportional to the bytes, about four times as many in the worst case.
    package static let bytes = Int(Listing.longest)
    /// Segments of one rendition, if one rule describes many: 23 days of two-second segments.
    package static let segments = 1_000_000
    /// Segments that a playlist lists one by one: 11 days of two-second segments. Each takes about 150 bytes.
    package static let listedSegments = 500_000
    /// Variants, and alternatives of audio, video and subtitles, in a multivariant playlist.
    package static let renditions = 10_000
    /// Tags with attributes, such as keys, initialization sections and parts: two for each of a hundred thousand
    /// segments.
    package static let tags = 250_000
    /// Bytes of an HLS line, or of an attribute or address of an MPD: keys and session data are embedded as `data:`
    /// addresses.
    package static let line = 256 << 10
    /// Bytes of an address after its variables are replaced. Clients and servers give up at about 8 KiB.
    package static let address = 64 << 10
    /// Variables of an HLS playlist.
    package static let variables = 1000
    /// Keys for one segment, each with another `KEYFORMAT`: more than there are DRM systems.
    static let keyFormats = 16
    /// The nesting depth of elements in an MPD. The standard's deepest elements are at nine.
    static let depth = 64
    /// Elements of an MPD that are kept, not counting the segments that it lists.
    static let elements = 100_000
    /// Alternatives of `BaseURL` that are considered for an address.
    static let baseURLs = 16
    /// The greatest time or duration, in seconds: 127 years, as live streams may count from 1970. In nanoseconds, it
    /// fits into an `Int64`.
    static let seconds: Int64 = 4_000_000_000
    /// Ticks per second, and segment numbers: the range of 32 bits in media files (ISO/IEC 14496-12 §8.4.2).
    static let timescale: Int64 = 1 << 32
    /// Times in ticks: 228 years at 10 MHz, a rate of some streams that count from 1970.
    static let ticks: Int64 = 1 << 56
}
