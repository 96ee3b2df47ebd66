import CachePolicy
import HTTPModel

/// The order in which people play the items of a feed or list.
///
///     podcast   newest first in the text, played from the oldest to the newest
///     list      played as it stands
package struct PlaybackOrder: Sendable {
    /// What follows an item.
    package enum Next: Sendable, Equatable {
        /// The URL is not one of an item.
        case unknown
        /// Nothing follows: it is the last one.
        case nothing
        case item(OriginURL)
    }

    /// One form of an item's media.
    package struct Form: Sendable {
        let item: Int32
        /// Its place in `directories`.
        let directory: Int32
        /// The rest of its URL.
        let name: String
        let type: String?
    }

    /// In order, of each item first the form that players play by default.
    package private(set) var forms: [Form] = []
    /// Most files of a list are in a few directories: below a long one, URLs would take its length each.
    private var directories: [OriginURL] = []
    private var index = AddressIndex(paths: [])
    /// The memory that it takes, in bytes.
    package private(set) var weight = 0

    /// The further forms of an item that are known.
    private static let mostAlternatives = 4

    /// Podcasts are played in the order of their dates; without dates by season and episode; without these, the last
    /// item of the text is the first.
    package init(of feed: Feed, within budget: WorkBudget) {
        let isList = feed.kind == .m3u || feed.kind == .pls || feed.kind == .xspf
        let items = isList ? feed.items : Self.sorted(feed.items)
        self.init(
            items.lazy.map { [$0.enclosure] + $0.alternatives.prefix(Self.mostAlternatives) }, within: budget)
    }

    /// The files of a list that names nothing but their URLs.
    package init(ofList files: some Sequence<OriginURL>, within budget: WorkBudget) {
        self.init(files.lazy.map { [Enclosure(url: $0)] }, within: budget)
    }

    /// What follows when the budget is spent is left out.
    private init(_ items: some Sequence<[Enclosure]>, within budget: WorkBudget) {
        var places: [String: Int32] = [:], known: Set<Int> = [], paths: [(path: String, position: Int)] = []
        for (item, enclosures) in items.enumerated() {
            for enclosure in enclosures {
                let form = try? form(enclosure, of: Int32(truncatingIfNeeded: item), &places, budget)
                guard let form else { break }
                forms.append(form)
                // If several items share a file, the first of them counts.
                guard known.insert(enclosure.url.normalized.hashValue).inserted else { continue }
                paths.append((enclosure.url.pathAndQuery, forms.count - 1)) // no trap: one was added
            }
        }
        index = AddressIndex(paths: paths)
        let lengths = forms.lazy.map(\.name.utf8.count).filter { $0 > 15 }.reduce(0) { $0 + $1 + 48 }
        // no trap: what is in memory
        weight =
            forms.capacity * MemoryLayout<Form>.stride + lengths + index.size
            + directories.reduce(0) { $0 + 160 + $1.pathAndQuery.utf8.count }
    }

    private mutating func form(
        _ enclosure: Enclosure, of item: Int32, _ places: inout [String: Int32], _ budget: WorkBudget
    ) throws(PlaylistError) -> Form {
        let url = enclosure.url, path = url.pathAndQuery.utf8.prefix { $0 != UInt8(ascii: "?") }
        try budget.take(url.pathAndQuery.utf8.count / 4 &+ 8)
        let end = path.lastIndex(of: UInt8(ascii: "/")).map(path.index(after:)) ?? path.startIndex
        let directory = url.at(String(url.pathAndQuery[..<end])) ?? url, name = directory.absolute
        let place = places[name] ?? Int32(truncatingIfNeeded: directories.count)
        if places.updateValue(place, forKey: name) == nil {
            try budget.make(name.utf8.count &+ MemoryLayout<OriginURL>.stride)
            directories.append(directory)
        }
        return Form(item: item, directory: place, name: String(url.pathAndQuery[end...]), type: enclosure.type)
    }

    private func url(of form: Form) -> OriginURL? {
        let directory = directories[Int(form.directory)]
        return directory.at(directory.pathAndQuery + form.name)
    }

    private func isSame(_ form: Form, _ name: OriginURL, _ budget: WorkBudget) throws(PlaylistError) -> Bool {
        try budget.take(directories[Int(form.directory)].pathAndQuery.utf8.count &+ form.name.utf8.count)
        return url(of: form)?.normalized == name
    }

    /// Whether a URL is that of an item's media.
    package func contains(_ url: OriginURL, within budget: WorkBudget) -> Bool { position(of: url, budget) != nil }

    private func position(of url: OriginURL, _ budget: WorkBudget) -> Int? {
        let name = url.normalized
        let position = try? index.position(of: url, at: nil) { position throws(PlaylistError) in
            try isSame(forms[position], name, budget)
        }
        return position ?? nil
    }

    /// The item to be played after one: in the same form, if it has that (the MP3 file after the MP3 file).
    package func next(after url: OriginURL, within budget: WorkBudget) -> Next {
        let name = url.normalized
        guard let position = position(of: url, budget) else { return .unknown }
        let type = forms[position].type
        var rest = forms[position...].drop { $0.item == forms[position].item }
        while let first = rest.first {
            let further = rest.prefix { $0.item == first.item }
            guard let isSame = try? further.contains(where: { try isSame($0, name, budget) }) else { return .nothing }
            let chosen = further.first { type != nil && $0.type == type } ?? first
            if !isSame { return self.url(of: chosen).map { .item($0) } ?? .nothing }
            rest = rest.dropFirst(further.count)
        }
        return .nothing
    }

    // MARK: - Order

    private struct Rank: Comparable {
        let date: Duration
        let season: Int
        let episode: Int
        /// Counted from the end of the text.
        let place: Int

        static func < (a: Rank, b: Rank) -> Bool {
            (a.date, a.season, a.episode, a.place) < (b.date, b.season, b.episode, b.place)
        }
    }

    private static func sorted(_ items: [FeedItem]) -> [FeedItem] {
        var date = items.lazy.compactMap(\.published).first
        let ranks = items.enumerated().map { place, item in
            // An item without a date was published between those around it.
            date = item.published ?? date
            return Rank(
                date: date ?? .zero, season: item.season ?? 0, episode: item.episode ?? 0, place: items.count - place)
        }
        return zip(ranks, items).sorted { $0.0 < $1.0 }.map(\.1)
    }
}
