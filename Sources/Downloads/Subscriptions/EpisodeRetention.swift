import HTTPModel

/// Which cached episodes of a feed stay, by `keep`.
enum EpisodeRetention {
    /// The episodes that go, oldest first. The newest one stays, however large it is: it would be fetched in vain.
    /// - Parameter cached: the cached episodes and their bytes, in any order.
    static func surplus(_ cached: [(episode: KnownEpisode, bytes: Int64)], limit: EpisodeLimit) -> [KnownEpisode] {
        let newestFirst = cached.sorted { $0.episode.isNewer(than: $1.episode) }
        let kept: Int?
        switch limit {
        case .episodes(let count): kept = count
        case .bytes(let limit):
            var sum: Int64 = 0
            kept =
                newestFirst.prefix { entry in
                    sum +|= entry.bytes
                    return sum <= limit
                }.count
        case .untilPlayed: kept = nil
        }
        guard let kept else { return [] }
        return newestFirst.dropFirst(max(1, kept)).reversed().map(\.episode)
    }
}
