import CachePolicy

extension ResolvedRule.QualityLimit {
    /// The offers within the limit; the least if there are none. What an offer does not state does not exclude it.
    func fitting<Offer: QualityOffer>(_ offers: [Offer]) -> [Offer] {
        guard !isNone else { return offers }
        let fitting = offers.filter { offer in
            if let lines, let resolution = offer.resolution, resolution.lines > lines { return false }
            if let bitsPerSecond, let bandwidth = offer.bandwidth, bandwidth > bitsPerSecond { return false }
            return true
        }
        return fitting.isEmpty ? RenditionChoice.Quality.worst.choose(of: offers).map { [$0] } ?? [] : fitting
    }
}

extension MultivariantPlaylist {
    /// The media playlists that stay under a limit; nil if all do.
    package func playlists(within limit: ResolvedRule.QualityLimit) -> Set<OriginURL>? {
        let fetchable = variants.filter { $0.url != nil }, pictures = fetchable.filter(\.hasVideo)
        let fitting = limit.fitting(pictures)
        guard fitting.count < pictures.count else { return nil }
        let previews = limit.fitting(iFrameVariants)
        let others = fetchable.filter { !$0.hasVideo }.map(\.url) + renditions.map(\.url)
        return Set((fitting.map(\.url) + previews.map(\.url) + others).compactMap { $0 })
    }
}

extension MPD {
    /// The representations that stay under a limit; nil if all do.
    package func representations(within limit: ResolvedRule.QualityLimit) -> Set<RepresentationID>? {
        var left = Set(representations)
        for period in periods.indices {
            for isTrickMode in [false, true] {
                let offers = offers(of: .video, inPeriod: period, isTrickMode: isTrickMode)
                left.subtract(offers.map(\.id))
                left.formUnion(limit.fitting(offers).map(\.id))
            }
        }
        return left.count < representations.count ? left : nil
    }
}
