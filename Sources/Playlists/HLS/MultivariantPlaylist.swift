import CachePolicy

/// The contents of a multivariant playlist (RFC 8216 §4.3.4, which calls it a master playlist).
package struct MultivariantPlaylist: Sendable {
    /// In the order of the text, which is also an order of preference.
    package internal(set) var variants: [Variant] = []
    /// Variants for fast seeking (`EXT-X-I-FRAME-STREAM-INF`), and preview pictures.
    package internal(set) var iFrameVariants: [Variant] = []
    /// Alternatives of audio, video and subtitles, in groups that variants name.
    package internal(set) var renditions: [AlternativeRendition] = []
    package internal(set) var sessionKeys: [EncryptionKey] = []
    /// JSON that accompanies the media, without URLs that cannot be fetched.
    package internal(set) var sessionData: [WrittenAddress] = []
    /// The server that directs players between hosts.
    package internal(set) var steering: WrittenAddress?

    /// All media playlists, in order and without duplicates.
    package var playlists: [OriginURL] {
        var known: Set<OriginURL> = []
        return addresses.compactMap(\.url).filter { known.insert($0).inserted }
    }

    var addresses: [WrittenAddress] {
        variants.compactMap(\.address) + renditions.compactMap(\.address) + iFrameVariants.compactMap(\.address)
    }

    /// The title that the author states in session data (`com.apple.hls.title`); nil if absent.
    package internal(set) var title: String?
}

/// One way to play the presentation: a media playlist, with groups of others that accompany it (RFC 8216 §4.3.4.2).
package struct Variant: Sendable, Equatable, WrittenAddress.Holder {
    /// That of its media playlist.
    package internal(set) var address: WrittenAddress?
    /// The greatest bit rate of any segment, including accompanying renditions, in bits per second.
    package let bandwidth: Int64?
    package let averageBandwidth: Int64?
    package let resolution: Resolution?
    /// Frames per second.
    package let frameRate: Double?
    /// RFC 6381; empty if none are stated.
    package let codecs: [String]
    /// Names of groups; nil if the variant names none.
    package let audioGroup: String?
    package let videoGroup: String?
    package let subtitleGroup: String?
    /// Its lines in the text: the tag's, and the address's if that is on a line of its own.
    var lines: [Range<Int>]
    /// The range to remove in order to remove the attribute `SUBTITLES`.
    let subtitleAttribute: Range<Int>?

    /// Whether it contains pictures: if it states nothing, it does.
    package var hasVideo: Bool { resolution != nil || codecs.isEmpty || codecs.contains { CodecKind($0) == .video } }
}

/// One alternative of a group (`EXT-X-MEDIA`, RFC 8216 §4.3.4.1).
package struct AlternativeRendition: Sendable, Equatable, WrittenAddress.Holder {
    package enum Kind: String, Sendable {
        case audio = "AUDIO"
        case video = "VIDEO"
        case subtitles = "SUBTITLES"
        case closedCaptions = "CLOSED-CAPTIONS"
    }

    package let kind: Kind
    package let group: String
    /// The name shown to people.
    package let name: String
    /// BCP 47; nil if not stated.
    package let language: String?
    package let isDefault: Bool
    package let isAutoselected: Bool
    package let isForced: Bool
    /// That of its media playlist, even one that is not fetched over HTTP; nil if it is inside the variants' own
    /// segments.
    package let address: WrittenAddress?
    /// Its line in the text.
    let line: Range<Int>
}

/// The kind of media for a codec's name (RFC 6381).
enum CodecKind: Sendable {
    case audio, video, text

    /// - Parameter codec: such as `avc1.64001f`; the result is nil for an unknown codec.
    init?(_ codec: String) {
        let name = codec.prefix { $0 != "." }.lowercased()
        guard let kind = Self.known[name] else { return nil }
        self = kind
    }

    private static let known: [String: CodecKind] = [
        "avc1": .video, "avc3": .video, "hvc1": .video, "hev1": .video, "dvh1": .video, "dvhe": .video, "av01": .video,
        "vp8": .video, "vp08": .video,
        "vp9": .video, "vp09": .video, "mp4v": .video, "vvc1": .video, "mp4a": .audio, "ac-3": .audio, "ec-3": .audio,
        "ac-4": .audio, "opus": .audio,
        "flac": .audio, "vorbis": .audio, "alac": .audio, "dtsc": .audio, "dtse": .audio, "dtsx": .audio,
        "mhm1": .audio, "stpp": .text, "wvtt": .text,
        "tx3g": .text,
    ]
}
