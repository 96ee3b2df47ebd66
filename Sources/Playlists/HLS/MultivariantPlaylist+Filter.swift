import CachePolicy

extension MultivariantPlaylist {
    /// What to remove so that only some of the renditions are offered.
    ///
    /// A variant goes with its media playlist, or with the last rendition of a group that it cannot do without
    /// (`AUDIO`, `VIDEO`). One whose subtitles all go loses the attribute that names them. What is inside the
    /// variants' own segments stays. Comments stay.
    /// - Parameter kept: the media playlists that are to stay.
    /// - Returns: nil where no variant would be left.
    package func edits(keeping kept: Set<OriginURL>) -> [AddressEdit]? {
        let isKept = { (url: OriginURL?) in url.map(kept.contains) ?? false }
        let before = Groups(renditions), left = Groups(renditions.filter { !$0.hasAddress || isKept($0.url) })
        let stays = { (variant: Variant) in isKept(variant.url) && !left.lacks(essentialsOf: variant, before) }
        guard variants.contains(where: stays) else { return nil }
        var removed = variants.filter { !stays($0) }.flatMap(\.lines)
        removed += iFrameVariants.filter { !isKept($0.url) }.flatMap(\.lines)
        removed += renditions.filter { $0.hasAddress && !isKept($0.url) }.map(\.line)
        removed += variants.filter { stays($0) && left.lacks(.subtitles, $0.subtitleGroup, before) }.compactMap(
            \.subtitleAttribute)
        return removed.sorted { $0.lowerBound < $1.lowerBound }.map { AddressEdit(range: $0, replacement: "") }
    }
}

/// The groups that have renditions.
private struct Groups {
    private struct Name: Hashable {
        let kind: AlternativeRendition.Kind
        let group: String
    }

    private let names: Set<Name>

    init(_ renditions: [AlternativeRendition]) { names = Set(renditions.map { Name(kind: $0.kind, group: $0.group) }) }

    /// Whether a group that there was before is no more.
    func lacks(_ kind: AlternativeRendition.Kind, _ group: String?, _ before: Groups) -> Bool {
        guard let group else { return false }
        let name = Name(kind: kind, group: group)
        return before.names.contains(name) && !names.contains(name)
    }

    func lacks(essentialsOf variant: Variant, _ before: Groups) -> Bool {
        lacks(.audio, variant.audioGroup, before) || lacks(.video, variant.videoGroup, before)
    }
}
