import CachePolicy
import Playlists

/// Names of renditions for people.
enum RenditionName {
    static func of(_ variant: Playlists.Variant) -> String {
        video(variant.resolution, bandwidth: variant.bandwidth, isVideo: variant.hasVideo)
    }

    static func of(_ rendition: AlternativeRendition) -> String {
        "\(rendition.kind.rawValue.lowercased()) \(rendition.language ?? rendition.name)"
    }

    /// nil if there is no such representation.
    static func of(_ id: MPD.RepresentationID, in mpd: MPD) -> String? {
        guard let representation = mpd[id] else { return nil }
        let set = mpd.periods[id.period].adaptationSets[id.adaptationSet]
        let period = mpd.periods.count > 1 ? ", period \(id.period + 1)" : ""
        guard set.kind != .video else {
            return video(representation.resolution, bandwidth: representation.bandwidth, isVideo: true) + period
        }
        let kind = set.kind == .text ? "subtitles" : set.kind.rawValue
        return "\(kind) \(set.language ?? rate(representation.bandwidth) ?? representation.id)" + period
    }

    static func video(_ resolution: Resolution?, bandwidth: Int64?, isVideo: Bool) -> String {
        let words = [isVideo ? resolution.map { "\($0.lines)p" } : "audio", rate(bandwidth)].compactMap { $0 }
        return words.isEmpty ? "video" : words.joined(separator: " ")
    }

    /// - Parameter bandwidth: bits per second.
    private static func rate(_ bandwidth: Int64?) -> String? {
        bandwidth.map { bits in
            // no trap: below a million the quotient is small, beyond it a tenth of what an Int64 holds
            bits >= 1_000_000 ? "\(bits / 1_000_000).\(bits % 1_000_000 / 100_000) Mbit/s" : "\(bits / 1000) kbit/s"
        }
    }
}

/// The renditions of a presentation with their names, in the order of its playlist. Of equal names, the later ones get a
/// number.
struct NamedRenditions {
    private var names: Set<String> = []
    /// The last number given to a name that several have, so that each search goes on where the former ended.
    private var numbers: [String: Int] = [:]

    private mutating func unique(_ name: String) -> String {
        var candidate = name
        while !names.insert(candidate).inserted {
            let number = numbers[name, default: 1] &+ 1
            numbers[name] = number
            candidate = "\(name) (\(number))"
        }
        return candidate
    }

    struct MediaList {
        let url: OriginURL
        let name: String
        let kind: String
        var bandwidth: Int64?
    }

    /// The media playlists that a multivariant playlist names, each once.
    /// - Parameters:
    ///   - most: how many at most.
    ///   - budget: that of its text. What it does not suffice for is left out.
    static func of(_ playlist: MultivariantPlaylist, upTo most: Int = .max, within budget: WorkBudget) -> [MediaList] {
        var (names, known, found) = (NamedRenditions(), Set<OriginURL>(), [MediaList]())
        for variant in playlist.variants.prefix(most) {
            guard (try? budget.make(variant.address?.length ?? 0)) != nil else { return found }
            guard let url = variant.url, known.insert(url).inserted else { continue }
            found.append(
                MediaList(
                    url: url, name: names.unique(RenditionName.of(variant)), kind: variant.hasVideo ? "video" : "audio",
                    bandwidth: variant.bandwidth))
        }
        for rendition in playlist.renditions.prefix(most) {
            guard (try? budget.make(rendition.address?.length ?? 0)) != nil else { return found }
            guard let url = rendition.url, known.insert(url).inserted else { continue }
            found.append(
                MediaList(
                    url: url, name: names.unique(RenditionName.of(rendition)),
                    kind: rendition.kind.rawValue.lowercased()
                ))
        }
        return found
    }

    /// Those of a manifest.
    static func of(_ mpd: MPD) -> [(id: MPD.RepresentationID, name: String)] {
        var names = NamedRenditions()
        return mpd.representations.compactMap { id in
            RenditionName.of(id, in: mpd).map { (id, names.unique($0)) }
        }
    }
}

extension PlaylistShelf {
    /// The title that the author has given a presentation; nil if it has none, or its playlist was not served lately.
    package func title(of whole: CacheKey) -> String? { document(whole)?.title }
}

extension PlaylistDocument {
    /// The title that its author has given it.
    package var title: String? {
        switch content {
        case .hls(let playlist): playlist.multivariant?.title
        case .dash(let mpd): mpd.title
        case .feed(let feed): feed.title
        }
    }
}
