import CachePolicy

/// The addresses in a feed that a client fetches, or follows to another feed.
struct FeedAddresses: Sendable, Equatable {
    struct Address: Sendable, Equatable {
        /// The position in the received text, without quotes or tags.
        let range: Range<Int>
        let reference: String
        let base: FeedElement.Base
    }

    private(set) var all: [Address] = []
    /// Whether no address was left out. With an incomplete list, rewriting would lead clients past the proxy.
    private(set) var isComplete = true

    mutating func add(_ address: Address) {
        if all.count < FeedLimits.addresses { all.append(address) } else { isComplete = false }
    }

    /// The memory that they take, in bytes.
    var size: Int {
        // no trap: what is in memory
        var weight = all.capacity * MemoryLayout<Address>.stride, last: FeedElement.Base?
        for address in all {
            if address.reference.utf8.count > 15 { weight += address.reference.utf8.count + 48 }
            if address.base !== last { weight += address.base.url.pathAndQuery.utf8.count + 256 }
            last = address.base
        }
        return weight
    }

    /// Notes that an address may be missing.
    mutating func leaveOut() { isComplete = false }

    /// Adds all addresses of an element and of the elements in it.
    mutating func add(_ element: FeedElement, in text: FeedText) {
        for name in element.name.addresses where element.hasRewrittenAddress {
            add(element[name], at: element.places[name], element, text)
        }
        if element.isAddress { add(element.text, at: element.content, element, text) }
        if element.name.isItem, let link = element.linkedMedia, !link.hasRewrittenAddress {
            add(link["href"] ?? link.text, at: link["href"] == nil ? link.content : link.places["href"], link, text)
        }
        for child in element.children { add(child, in: text) }
    }

    private mutating func add(_ written: String?, at place: Range<Int>?, _ element: FeedElement, _ text: FeedText) {
        guard text.hasPlaces, let reference = written.flatMap({ FeedReference($0) }), !reference.isDamaged
        else { return }
        guard let place, let range = text.source(of: place) else {
            // Elements within the text, for example. An address of another scheme is never rewritten.
            isComplete = isComplete && reference.url(at: element.base) == nil
            return
        }
        add(Address(range: range, reference: reference.text, base: element.base))
    }
}

extension FeedElement {
    /// Whether its address is rewritten. Links to web pages stay: users open them in a browser, not through the cache.
    fileprivate var hasRewrittenAddress: Bool {
        name != .link || !relations.isDisjoint(with: Self.rewrittenRelations)
    }

    private static let rewrittenRelations: Set<String> = [
        "enclosure", "self", "first", "last", "next", "prev", "previous", "current", "next-archive", "prev-archive",
    ]

    /// Whether its text is an address that clients fetch.
    fileprivate var isAddress: Bool {
        switch name {
        case .url, .logo, .icon, .newAddress, .location: true
        case .image, .itunesImage: places.isEmpty && child(.url) == nil
        default: false
        }
    }

    /// The relations of a link, in lower case; `alternate` if it states none (RFC 4287 §4.2.7.2).
    var relations: Set<String> {
        let registry = "http://www.iana.org/assignments/relation/"
        let words = (self["rel"] ?? "alternate").lowercased().split(whereSeparator: \.isWhitespace)
        return Set(words.map { $0.hasPrefix(registry) ? String($0.dropFirst(registry.count)) : String($0) })
    }
}
