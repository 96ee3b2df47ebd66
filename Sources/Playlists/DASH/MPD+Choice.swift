extension MPD.Representation: QualityOffer {}

extension MPD {
    /// The selected representations of a presentation.
    package struct Choice: Sendable, Equatable {
        /// In the order of the periods; within one, video, then audio, then text.
        package internal(set) var representations: [MPD.RepresentationID] = []
        /// Requested languages that no period offers.
        package internal(set) var missingLanguages: [String] = []
    }
}

extension MPD {
    /// The representations that a choice selects in each period.
    package func choose(_ choice: RenditionChoice) -> Choice {
        if choice.isEverything { return Choice(representations: representations) }
        var chosen = Choice()
        var missing: [Set<String>] = []
        for period in periods.indices {
            var lacking: Set<String> = []
            add(choice.allowed(offers(of: .video, inPeriod: period)), choice.quality, to: &chosen)
            lacking.formUnion(add(.audio, inPeriod: period, choice.audio, choice.quality, to: &chosen))
            lacking.formUnion(add(.text, inPeriod: period, choice.subtitles, .best, to: &chosen))
            missing.append(lacking)
        }
        let everywhere = missing.dropFirst().reduce(missing.first ?? []) { $0.intersection($1) }
        chosen.missingLanguages = everywhere.sorted()
        return chosen
    }

    /// A representation with its place.
    struct Offer: QualityOffer {
        let id: RepresentationID
        let bandwidth: Int64?
        let resolution: Resolution?
        let frameRate: Double?
    }

    /// All representations of one set that have the same kind.
    private struct OfferedSet {
        let language: String?
        let offers: [Offer]
    }

    private func sets(of kind: MediaKind, inPeriod period: Int, isTrickMode: Bool = false) -> [OfferedSet] {
        periods[period].adaptationSets.enumerated().compactMap { place, set in
            guard set.kind == kind, set.isTrickMode == isTrickMode, !set.representations.isEmpty else { return nil }
            let offers = set.representations.enumerated().map { number, representation in
                Offer(
                    id: RepresentationID(period: period, adaptationSet: place, representation: number),
                    bandwidth: representation.bandwidth,
                    resolution: representation.resolution, frameRate: representation.frameRate)
            }
            return OfferedSet(language: set.language, offers: offers)
        }
    }

    /// Sets of pictures are alternatives to each other, with other codecs or from other cameras.
    func offers(of kind: MediaKind, inPeriod period: Int, isTrickMode: Bool = false) -> [Offer] {
        sets(of: kind, inPeriod: period, isTrickMode: isTrickMode).flatMap(\.offers)
    }

    private func add(_ offers: [Offer], _ quality: RenditionChoice.Quality, to chosen: inout Choice) {
        if let offer = quality.choose(of: offers) { chosen.representations.append(offer.id) }
    }

    /// Adds one representation of each set with a selected language.
    /// - Returns: the languages that are not offered.
    private func add(
        _ kind: MediaKind, inPeriod period: Int, _ languages: RenditionChoice.Languages,
        _ quality: RenditionChoice.Quality,
        to chosen: inout Choice
    ) -> [String] {
        let offered = sets(of: kind, inPeriod: period)
        var (wanted, missing) = languages.choose(of: offered, language: \.language) { Array($0.prefix(1)) }
        // As in HLS, a film gets a sound.
        if kind == .audio, wanted.isEmpty, languages != .none { wanted = Array(offered.prefix(1)) }
        // A number of lines does not apply to sound: the best quality accompanies the picture.
        let quality = if kind == .audio, case .lines = quality { RenditionChoice.Quality.best } else { quality }
        for set in wanted { add(set.offers, quality, to: &chosen) }
        return missing
    }
}
