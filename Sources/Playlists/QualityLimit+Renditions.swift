import CachePolicy

extension ResolvedRule.QualityLimit {
    /// What an offer does not state does not exclude it.
    func allows(_ offer: some QualityOffer) -> Bool {
        if let lines, let resolution = offer.resolution, resolution.lines > lines { return false }
        if let bitsPerSecond, let bandwidth = offer.bandwidth, bandwidth > bitsPerSecond { return false }
        return true
    }

    /// The offers within the limit; the least if there are none.
    func fitting<Offer: QualityOffer>(_ offers: [Offer]) -> [Offer] {
        guard !isNone else { return offers }
        let fitting = offers.filter(allows)
        return fitting.isEmpty ? RenditionChoice.Quality.worst.choose(of: offers).map { [$0] } ?? [] : fitting
    }
}

extension MultivariantPlaylist {
    /// The edits that take out the pictures above a limit; of a presentation without pictures, the sounds.
    package func edits(within limit: ResolvedRule.QualityLimit) -> [AddressEdit] {
        let pictures = variants.filter(\.hasVideo), offers = pictures.isEmpty ? variants : pictures
        let least = offers.contains(where: limit.allows) ? nil : limit.fitting(offers).first
        let gone = (offers + iFrameVariants).filter { !limit.allows($0) && $0 != least }.flatMap(\.lines)
        return gone.sorted { $0.lowerBound < $1.lowerBound }.map { AddressEdit(range: $0, replacement: "") }
    }
}

extension MPD {
    /// The edits that take out the pictures above a limit; in a period without pictures, the sounds.
    package func edits(within limit: ResolvedRule.QualityLimit, _ budget: WorkBudget) throws(PlaylistError)
        -> [AddressEdit]
    {
        var left = Set(representations)
        for period in periods.indices {
            let pictures = offers(of: .video, inPeriod: period)
            let previews = offers(of: .video, inPeriod: period, isTrickMode: true)
            for offers in [pictures.isEmpty ? offers(of: .audio, inPeriod: period) : pictures, previews] {
                left.subtract(offers.map(\.id))
                left.formUnion(limit.fitting(offers).map(\.id))
            }
        }
        return try left.count < representations.count ? edits(keeping: left, within: budget) ?? [] : []
    }
}
