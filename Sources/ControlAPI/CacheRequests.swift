import CachePolicy

/// `{"max_size": 5000000000, "min_free": "1GB"}`; either may be missing.
package struct LimitChange: RequestBody {
    package static let example = "{\"max_size\": \"20GB\"}"
    package let maxSize: Int64?
    package let minFree: Int64?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxSize, minFree
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
        maxSize = try members.decodeIfThere(ReceivedSize.self, forKey: .maxSize)?.bytes
        minFree = try members.decodeIfThere(ReceivedSize.self, forKey: .minFree)?.bytes
        guard maxSize != nil || minFree != nil else {
            throw ControlError(422, "nothing to change: give max_size, min_free or both")
        }
    }
}

/// `{"pinned": true}`
package struct ResourceChange: RequestBody {
    package static let example = "{\"pinned\": true}"
    package let pinned: Bool

    package init(pinned: Bool) { self.pinned = pinned }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case pinned
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
        guard let pinned = try? members.decode(Bool.self, forKey: .pinned) else {
            throw ControlError(422, "say whether it is pinned: {\"pinned\": true} or false")
        }
        self.pinned = pinned
    }
}

/// `{"url": "https://example.org/feed.xml"}`: an item, or a feed or list whose items are meant. The answer is the same.
package struct WantedItem: RequestBody {
    package static let example = "{\"url\": \"https://example.org/episode-1.mp3\"}"
    package let url: OriginURL

    package init(url: OriginURL) { self.url = url }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case url
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
        guard let text = try members.decodeIfThere(String.self, forKey: .url) else {
            throw ControlError(422, "the member url is missing: name a media URL")
        }
        do throws(OriginURLError) { url = try OriginURL(url: text) } catch {
            throw ControlError(422, "url: \(error.reason)")
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(url.absolute, forKey: .url)
    }
}

/// Where a player finds a resource.
package struct PlayerPath: Codable, Sendable {
    /// A path of the proxy, with a query.
    package let path: String

    package init(path: String) { self.path = path }
}
