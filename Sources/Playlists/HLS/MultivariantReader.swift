import CachePolicy
import HTTPModel

/// Collects the contents of a multivariant playlist's tags.
struct MultivariantReader {
    private(set) var playlist = MultivariantPlaylist()
    /// A variant whose address is on a later line.
    private var pending: Variant?

    var isWaiting: Bool { pending != nil }

    /// The memory that it takes besides its strings, in bytes.
    var weight: Int {
        // no trap: what is in memory
        (playlist.variants.capacity + playlist.iFrameVariants.capacity) * (MemoryLayout<Variant>.stride + 160)
            + playlist.renditions.capacity * MemoryLayout<AlternativeRendition>.stride
            + playlist.sessionKeys.capacity * MemoryLayout<EncryptionKey>.stride
            + playlist.sessionData.capacity * MemoryLayout<WrittenAddress>.stride
    }

    /// Handles the address of the pending variant.
    mutating func take(_ address: WrittenAddress, _ line: HLSLine) {
        guard var variant = pending else { return }
        variant.address = address
        variant.lines.append(line.whole)
        playlist.variants.append(variant)
        pending = nil
    }

    mutating func take(_ tag: HLSTag, _ values: TagValues) {
        switch tag {
        case .variant: pending = variant(values)
        case .iFrameVariant, .imageVariant: playlist.iFrameVariants.append(variant(values))
        case .rendition: rendition(values).map { playlist.renditions.append($0) }
        case .sessionKey: values.key.map { playlist.sessionKeys.append($0) }
        case .sessionData: takeSessionData(values)
        case .contentSteering: playlist.steering = values.address("SERVER-URI")
        default: break
        }
    }

    private func variant(_ values: TagValues) -> Variant {
        Variant(
            address: values.address("URI"), bandwidth: values["BANDWIDTH"].flatMap(MediaNumbers.bandwidth),
            averageBandwidth: values["AVERAGE-BANDWIDTH"].flatMap(MediaNumbers.bandwidth),
            resolution: values["RESOLUTION"].flatMap(Resolution.init),
            frameRate: values["FRAME-RATE"].flatMap(MediaNumbers.frameRate), codecs: Self.codecs(values["CODECS"]),
            audioGroup: values["AUDIO"],
            videoGroup: values["VIDEO"], subtitleGroup: values["SUBTITLES"], lines: [values.line.whole],
            subtitleAttribute: values.removal(of: "SUBTITLES"))
    }

    static func codecs(_ text: String?) -> [String] {
        (text ?? "").split(separator: ",").map { String(ASCII.trimmed($0)) }
    }

    private func rendition(_ values: TagValues) -> AlternativeRendition? {
        guard let kind = values["TYPE"].flatMap(AlternativeRendition.Kind.init), let group = values["GROUP-ID"] else {
            return nil
        }
        return AlternativeRendition(
            kind: kind, group: group, name: values["NAME"] ?? "", language: values["LANGUAGE"],
            isDefault: values.has("DEFAULT"),
            isAutoselected: values.has("AUTOSELECT"), isForced: values.has("FORCED"), address: values.address("URI"),
            line: values.line.whole)
    }

    private mutating func takeSessionData(_ values: TagValues) {
        if let address = values.address("URI") { playlist.sessionData.append(address) }
        if values["DATA-ID"] == "com.apple.hls.title", playlist.title == nil { playlist.title = values["VALUE"] }
    }
}
