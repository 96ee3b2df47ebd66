import CachePolicy
import HTTPModel

/// Collects the contents of a multivariant playlist's tags.
struct MultivariantReader {
    private(set) var playlist = MultivariantPlaylist()
    /// A variant whose address is on a later line.
    private var pending: Variant?

    var isWaiting: Bool { pending != nil }

    /// Handles the address of the pending variant.
    mutating func take(_ reference: String, url: OriginURL?, _ line: HLSLine) {
        guard var variant = pending else { return }
        variant.url = url
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
        case .contentSteering: playlist.steering = values.url("SERVER-URI")
        default: break
        }
    }

    private func variant(_ values: TagValues) -> Variant {
        Variant(
            url: values.url("URI"), bandwidth: values["BANDWIDTH"].flatMap(MediaNumbers.bandwidth),
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
            isAutoselected: values.has("AUTOSELECT"), isForced: values.has("FORCED"), url: values.url("URI"),
            hasAddress: values["URI"] != nil,
            line: values.line.whole)
    }

    private mutating func takeSessionData(_ values: TagValues) {
        if let url = values.url("URI") { playlist.sessionData.append(url) }
        if values["DATA-ID"] == "com.apple.hls.title", playlist.title == nil { playlist.title = values["VALUE"] }
    }
}
