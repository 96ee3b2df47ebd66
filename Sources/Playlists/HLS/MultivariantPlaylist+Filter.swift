import CachePolicy

extension MultivariantPlaylist {
    /// The edits that leave only some of the renditions.
    ///
    /// A variant is removed with its media playlist, or with the last rendition of a group that it requires
    /// (`AUDIO`, `VIDEO`). A variant that loses all subtitles loses the attribute that names them. Renditions
    /// inside the variants' own segments stay. Comments stay.
    /// - Parameter kept: the media playlists to keep.
    /// - Returns: nil if no variant would be left.
    package func edits(keeping kept: Set<OriginURL>, within budget: WorkBudget) throws(PlaylistError) -> [AddressEdit]?
    {
        // Each is resolved some times.
        for address in addresses {
            try budget.take((address.base.pathAndQuery.utf8.count &+ address.reference.utf8.count) &* 4)
        }
        let isKept = { (url: OriginURL?) in url.map(kept.contains) ?? false }
        let before = Groups(renditions), left = Groups(renditions.filter { $0.address == nil || isKept($0.url) })
        let stays = { (variant: Variant) in isKept(variant.url) && !left.lacks(essentialsOf: variant, before) }
        guard variants.contains(where: stays) else { return nil }
        var removed = variants.filter { !stays($0) }.flatMap(\.lines)
        removed += iFrameVariants.filter { !isKept($0.url) }.flatMap(\.lines)
        removed += renditions.filter { $0.address != nil && !isKept($0.url) }.map(\.line)
        removed += variants.filter { stays($0) && left.lacks(.subtitles, $0.subtitleGroup, before) }.compactMap(
            \.subtitleAttribute)
        return removed.sorted { $0.lowerBound < $1.lowerBound }.map { AddressEdit(range: $0, replacement: "") }
    }
}

extension MultivariantPlaylist {
    /// The groups that have renditions.
    private struct Groups {
        private struct Name: Hashable {
            let kind: AlternativeRendition.Kind
            let group: String
        }

        private let names: Set<Name>

        init(_ renditions: [AlternativeRendition]) {
            names = Set(renditions.map { Name(kind: $0.kind, group: $0.group) })
        }

        /// Whether a group existed before, but does not any longer.
        func lacks(_ kind: AlternativeRendition.Kind, _ group: String?, _ before: Groups) -> Bool {
            guard let group else { return false }
            let name = Name(kind: kind, group: group)
            return before.names.contains(name) && !names.contains(name)
        }

        func lacks(essentialsOf variant: Variant, _ before: Groups) -> Bool {
            lacks(.audio, variant.audioGroup, before) || lacks(.video, variant.videoGroup, before)
        }
    }
}
