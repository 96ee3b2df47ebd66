/// The supported tags (RFC 8216 §4.3; draft-pantos-hls-rfc8216bis §4.4 for newer ones). All others are ignored.
enum HLSTag: String, CaseIterable, Sendable {
    // In both kinds of playlist
    case define = "EXT-X-DEFINE"
    case independentSegments = "EXT-X-INDEPENDENT-SEGMENTS"
    case version = "EXT-X-VERSION"
    // Multivariant
    case contentSteering = "EXT-X-CONTENT-STEERING"
    case iFrameVariant = "EXT-X-I-FRAME-STREAM-INF"
    case imageVariant = "EXT-X-IMAGE-STREAM-INF"
    case rendition = "EXT-X-MEDIA"
    case sessionData = "EXT-X-SESSION-DATA"
    case sessionKey = "EXT-X-SESSION-KEY"
    case variant = "EXT-X-STREAM-INF"
    // Media
    case byteRange = "EXT-X-BYTERANGE"
    case dateRange = "EXT-X-DATERANGE"
    case discontinuity = "EXT-X-DISCONTINUITY"
    case discontinuitySequence = "EXT-X-DISCONTINUITY-SEQUENCE"
    case endList = "EXT-X-ENDLIST"
    case gap = "EXT-X-GAP"
    case iFramesOnly = "EXT-X-I-FRAMES-ONLY"
    case key = "EXT-X-KEY"
    case map = "EXT-X-MAP"
    case mediaSequence = "EXT-X-MEDIA-SEQUENCE"
    case part = "EXT-X-PART"
    case partInformation = "EXT-X-PART-INF"
    case playlistType = "EXT-X-PLAYLIST-TYPE"
    case preloadHint = "EXT-X-PRELOAD-HINT"
    case renditionReport = "EXT-X-RENDITION-REPORT"
    case segment = "EXTINF"
    case serverControl = "EXT-X-SERVER-CONTROL"
    case skip = "EXT-X-SKIP"
    case targetDuration = "EXT-X-TARGETDURATION"

    static let named = Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })

    /// The attributes that contain addresses, with the roles of these. What is listed is rewritten.
    var addresses: [(attribute: String, role: PlaylistAddress.Role)] {
        switch self {
        case .contentSteering: [("SERVER-URI", .steering)]
        case .iFrameVariant, .imageVariant: [("URI", .iFrames)]
        case .rendition: [("URI", .rendition)]
        case .sessionData: [("URI", .sessionData)]
        case .sessionKey, .key: [("URI", .key)]
        case .map: [("URI", .initialization)]
        case .part: [("URI", .part)]
        case .preloadHint: [("URI", .preloadHint)]
        case .renditionReport: [("URI", .renditionReport)]
        // draft-pantos-hls-rfc8216bis, appendix D: interstitials.
        case .dateRange: [("X-ASSET-URI", .asset), ("X-ASSET-LIST", .asset)]
        default: []
        }
    }

    /// Whether the tag belongs to multivariant or to media playlists; nil if to both. One that is not listed makes its
    /// text a media playlist. RFC 8216 §4.3.2 to §4.3.4: no playlist has tags of both kinds.
    var isOfMultivariant: Bool? {
        switch self {
        case .variant, .iFrameVariant, .imageVariant, .rendition, .sessionData, .sessionKey, .contentSteering: true
        // Plain lists of music contain these, too.
        case .define, .independentSegments, .version, .segment: nil
        default: false
        }
    }
}
