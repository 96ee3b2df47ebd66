import CachePolicy

extension Variant: QualityOffer {}

/// The selected media playlists of a presentation.
package struct ChosenPlaylists: Sendable {
    /// One, or all; empty if none of the playlist's variants can be fetched.
    package internal(set) var variants: [Variant] = []
    /// Alternatives with a media playlist of their own, from the groups that the variants name.
    package internal(set) var renditions: [AlternativeRendition] = []
    /// Requested languages that are not offered.
    package internal(set) var missingLanguages: [String] = []

    /// All selected playlists, without duplicates.
    package var playlists: [OriginURL] {
        var known: Set<OriginURL> = []
        return (variants.map(\.url) + renditions.map(\.url)).compactMap { $0 }.filter { known.insert($0).inserted }
    }
}

extension MultivariantPlaylist {
    /// The playlists that a choice selects.
    package func choose(_ choice: RenditionChoice) -> ChosenPlaylists {
        let fetchable = variants.filter { $0.url != nil }
        if choice.isEverything {
            return ChosenPlaylists(variants: fetchable, renditions: renditions.filter { $0.url != nil })
        }
        let withVideo = fetchable.filter(\.hasVideo)
        guard let variant = choice.quality.choose(of: choice.allowed(withVideo.isEmpty ? fetchable : withVideo)) else {
            return ChosenPlaylists()
        }
        var chosen = ChosenPlaylists(variants: [variant])
        add(.video, of: variant.videoGroup, .standard, to: &chosen)
        add(.audio, of: variant.audioGroup, choice.audio, to: &chosen)
        add(.subtitles, of: variant.subtitleGroup, choice.subtitles, to: &chosen)
        return chosen
    }

    private func add(
        _ kind: AlternativeRendition.Kind, of group: String?, _ languages: RenditionChoice.Languages,
        to chosen: inout ChosenPlaylists
    ) {
        let offered = renditions.filter { $0.kind == kind && $0.group == group }
        var (wanted, missing) = languages.choose(of: offered, language: \.language, standard: Self.standard)
        // A user who requests an unavailable language does not want a film without sound.
        if kind == .audio, wanted.isEmpty, languages != .none { wanted = Self.standard(offered) }
        chosen.renditions += wanted.filter { $0.url != nil }
        chosen.missingLanguages += missing
    }

    /// RFC 8216 §4.3.4.1: the default, or else one with autoselect; or else the first.
    private static func standard(_ offered: [AlternativeRendition]) -> [AlternativeRendition] {
        let one = offered.first(where: \.isDefault) ?? offered.first(where: \.isAutoselected) ?? offered.first
        return one.map { [$0] } ?? []
    }
}
