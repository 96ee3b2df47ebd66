/// What a playlist may be at most. All that is read from one is bounded by these, whatever it announces.
package enum PlaylistLimits {
    /// 32 MiB: a hundred thousand segments with signed addresses of 250 bytes and a tag or two each. Memory follows
    /// the bytes, some four times as many in the worst case.
    package static let bytes = 32 << 20
    /// Of one rendition, where a rule stands for many: 23 days of two-second segments.
    package static let segments = 1_000_000
    /// Segments that a playlist lists one by one: 11 days of two-second segments. Each takes some 150 bytes.
    package static let listedSegments = 500_000
    /// Variants, and alternatives of audio, video and subtitles, of a multivariant playlist.
    package static let renditions = 10_000
    /// Tags with attributes, such as keys, initialization sections and parts: two for each of a hundred thousand
    /// segments.
    package static let tags = 250_000
    /// Bytes of a line of HLS, or of an attribute or address of an MPD: keys and session data come as `data:`
    /// addresses in one.
    package static let line = 256 << 10
    /// Bytes of an address once its variables are replaced. Clients and servers give up at some 8 KiB.
    package static let address = 64 << 10
    /// Bytes that variables, or the absolute form of addresses, may add to a playlist in all: a variable of 64 KiB,
    /// named in each line, would else make terabytes of some megabytes.
    package static let expansion = 32 << 20
    /// Of a playlist of HLS.
    package static let variables = 1000
    /// Keys for one segment, each in another `KEYFORMAT`: one for each DRM system there is, and then some.
    static let keyFormats = 16
    /// Elements within elements of an MPD. The deepest that the standard has are at nine.
    static let depth = 64
    /// Elements that are kept of an MPD, without the segments that it lists.
    static let elements = 100_000
    /// Alternatives of `BaseURL` that an address is held against.
    static let baseURLs = 16
    /// Seconds, of anything: 31 years. In nanoseconds this fits into an `Int64`.
    static let seconds: Int64 = 1_000_000_000
    /// Ticks per second, and numbers of segments: what 32 bits hold in media files (ISO/IEC 14496-12 §8.4.2).
    static let timescale: Int64 = 1 << 32
    /// Times in ticks: 2⁵³, beyond which players written in JavaScript cannot count.
    static let ticks: Int64 = 1 << 53
}
