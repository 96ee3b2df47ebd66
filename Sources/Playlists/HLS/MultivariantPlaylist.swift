import CachePolicy

/// What a multivariant playlist offers (RFC 8216 §4.3.4, where it is called a master playlist).
package struct MultivariantPlaylist: Sendable {
    /// In the order of the text, which is also an order of preference.
    package internal(set) var variants: [Variant] = []
    /// For fast seeking (`EXT-X-I-FRAME-STREAM-INF`), and previews as pictures.
    package internal(set) var iFrameVariants: [Variant] = []
    /// Alternatives of audio, video and subtitles, in groups that variants name.
    package internal(set) var renditions: [AlternativeRendition] = []
    package internal(set) var sessionKeys: [EncryptionKey] = []
    /// JSON beside the media; nil URLs left out.
    package internal(set) var sessionData: [OriginURL] = []
    /// The server that moves players between hosts.
    package internal(set) var steering: OriginURL?

    /// All media playlists, each once, in order.
    package var playlists: [OriginURL] {
        var known: Set<OriginURL> = []
        let all = variants.map(\.url) + renditions.map(\.url) + iFrameVariants.map(\.url)
        return all.compactMap { $0 }.filter { known.insert($0).inserted }
    }

    /// The title that the author gives in session data (`com.apple.hls.title`); nil without one.
    package internal(set) var title: String?
}

/// One way to play the whole: a media playlist, with groups of others to go with it (RFC 8216 §4.3.4.2).
package struct Variant: Sendable, Equatable {
    /// Of its media playlist.
    package internal(set) var url: OriginURL?
    /// The greatest of any segment, with all that goes with it, in bits per second.
    package let bandwidth: Int64?
    package let averageBandwidth: Int64?
    package let resolution: Resolution?
    /// Frames per second.
    package let frameRate: Double?
    /// RFC 6381; empty where none are named.
    package let codecs: [String]
    /// Names of groups; nil where there are none.
    package let audioGroup: String?
    package let videoGroup: String?
    package let subtitleGroup: String?
    /// The lines that it stands in: the tag's, and the address's where that is a line of its own.
    var lines: [Range<Int>]
    /// What goes when the attribute `SUBTITLES` goes.
    let subtitleAttribute: Range<Int>?

    /// Whether there are pictures in it: where it says nothing, there are.
    package var hasVideo: Bool { resolution != nil || codecs.isEmpty || codecs.contains { CodecKind($0) == .video } }
}

/// One alternative of a group (`EXT-X-MEDIA`, RFC 8216 §4.3.4.1).
package struct AlternativeRendition: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case audio = "AUDIO"
        case video = "VIDEO"
        case subtitles = "SUBTITLES"
        case closedCaptions = "CLOSED-CAPTIONS"
    }

    package let kind: Kind
    package let group: String
    /// For people.
    package let name: String
    /// BCP 47; nil where it is not said.
    package let language: String?
    package let isDefault: Bool
    package let isAutoselected: Bool
    package let isForced: Bool
    /// Of its media playlist; nil where it is inside the variants' own segments.
    package let url: OriginURL?
    /// It has an address, if perhaps none that is fetched over HTTP.
    let hasAddress: Bool
    /// The line that it stands in.
    let line: Range<Int>
}

/// What a codec's name of RFC 6381 is for.
enum CodecKind: Sendable {
    case audio, video, text

    /// - Parameter codec: such as `avc1.64001f`; nil for one that is not known.
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
