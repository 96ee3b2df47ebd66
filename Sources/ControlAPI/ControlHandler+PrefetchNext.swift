import CachePolicy
import HTTPTransport

extension ControlHandler {
    /// Has the next item downloaded when the named one was played. The proxy remembers a few until it ends.
    func prefetchNext(_ exchange: Exchange) {
        receiveJSON(WantedItem.self, exchange) { [self] item in
            answer(exchange) { [wantNext] _ in
                wantNext(item.url)
                return WantedItemReport(url: item.url.absolute)
            }
        }
    }
}

/// `{"url": "https://example.org/feed.xml"}`: an item, or a feed or list whose items are meant.
struct WantedItem: ReceivedValue {
    static let example = "{\"url\": \"https://example.org/episode-1.mp3\"}"
    let url: OriginURL

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case url
    }

    init(from decoder: any Decoder) throws {
        try decoder.refuseMembers(except: CodingKeys.allCases.map(\.stringValue))
        let members = try decoder.container(keyedBy: CodingKeys.self)
        guard let text = try members.decodeIfThere(String.self, forKey: .url) else {
            throw ControlError(422, "the member url is missing: name a media URL")
        }
        do throws(OriginURLError) { url = try OriginURL(url: text) } catch {
            throw ControlError(422, "url: \(error.reason)")
        }
    }
}

/// The answer to `POST /api/v1/next`.
package struct WantedItemReport: Codable, Sendable {
    package let url: String
}
