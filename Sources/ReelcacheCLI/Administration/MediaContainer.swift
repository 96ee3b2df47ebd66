/// The container format of a rendition. The raw values are the names of ffmpeg's demuxers.
enum MediaContainer: String {
    case transportStream = "mpegts"
    case mp4, matroska, aac, mp3, ac3, eac3
    case webVTT = "webvtt"

    /// How many of the first bytes are examined.
    static let sniffedBytes = 16

    /// - Parameters:
    ///   - beginning: its first bytes, those of the initialization section where it has one.
    ///   - path: of its first segment, which decides if the bytes do not.
    init(_ beginning: [UInt8], path: String, hasInitialization: Bool) {
        let named = Self.suffixes.first { path.lowercased().hasSuffix("." + $0.key) }?.value
        // No other format has such a section; a transport stream's begins as one.
        let usual: MediaContainer = hasInitialization ? (named == .matroska ? .matroska : .mp4) : .transportStream
        self = Self.sniff(beginning) ?? (hasInitialization ? usual : named ?? usual)
    }

    private static func sniff(_ beginning: [UInt8]) -> MediaContainer? {
        if beginning.starts(with: [0x47]) { return .transportStream }
        // EBML, which WebM is as well.
        if beginning.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) { return .matroska }
        if beginning.starts(with: "WEBVTT".utf8) { return .webVTT }
        let box = String(decoding: beginning.dropFirst(4).prefix(4), as: UTF8.self)
        return ["ftyp", "styp", "moov", "moof", "sidx", "emsg"].contains(box) ? .mp4 : nil
    }

    /// The box of an MP4 initialization section that says how its samples are encoded (ISO/IEC 14496-12, `stsd`); the
    /// section itself, if it has none.
    static func sampleDescriptions(_ section: [UInt8]) -> [UInt8] {
        guard let name = section.firstRange(of: Array("stsd".utf8)), name.lowerBound >= 4 else { return section }
        let size = section[(name.lowerBound - 4)..<name.lowerBound].reduce(0) { $0 << 8 | Int($1) } // no trap: checked
        return Array(section[name.lowerBound...].prefix(max(0, size - 4))) // no trap: four bytes
    }

    private static let suffixes: [String: MediaContainer] = [
        "ts": .transportStream, "mp4": .mp4, "m4s": .mp4, "m4v": .mp4, "m4a": .mp4, "cmfv": .mp4, "cmfa": .mp4,
        "webm": .matroska, "aac": .aac, "mp3": .mp3, "ac3": .ac3, "ec3": .eac3, "vtt": .webVTT,
    ]

    /// Whether a file of this name should have this container, so that joining the parts is enough.
    func isNamed(by output: String) -> Bool {
        let suffixes: [String] =
            switch self {
            case .transportStream: [".ts"]
            case .mp4: [".mp4", ".m4s", ".m4v", ".m4a"]
            case .matroska: [".webm"]
            case .aac, .mp3, .ac3, .eac3, .webVTT: []
            }
        return suffixes.contains { output.lowercased().hasSuffix($0) }
    }
}
