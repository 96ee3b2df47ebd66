import CachePolicy
import Downloads
import Playlists

/// What is sent to order downloads: `{"downloads": [{"url": "https://example.org/film.mp4", "priority": "high"}]}`
package struct DownloadOrders: RequestBody {
    package static let example = "{\"downloads\": [{\"url\": \"https://example.org/film.mp4\"}]}"

    package let downloads: [DownloadOrder]

    package init(_ downloads: some Sequence<DownloadOrder>) { self.downloads = Array(downloads) }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case downloads
    }

    package init(from decoder: any Decoder) throws {
        downloads = try decoder.members(CodingKeys.self).decode([DownloadOrder].self, forKey: .downloads)
        guard !downloads.isEmpty else {
            throw ControlError(
                422,
                "there is nothing to download: list at least one, such as {\"url\": \"https://example.org/film.mp4\"}")
        }
    }
}

extension DownloadOrder: Codable {
    private static let urlKey = BodyKey("url")

    /// The other members.
    private static let members: [BodyMember<DownloadOrder>] = [
        .init("first", \.options.first, .size),
        .init("limitRate", \.options.bytesPerSecond, .size),
        .init("priority", \.options.priority, .priority),
        .init("connections", \.options.connections, .number),
        .init("category", \.options.category, .string),
        .init("pinned", \.options.isPinned, .flag),
        .init(
            "quality", \.options.renditions.quality,
            .init(RenditionChoice.Quality.forms, value: { RenditionChoice.Quality($0) }, sent: { $0.text }),
            unless: standard.quality),
        .init("audio", \.options.renditions.audio, .languages, unless: standard.audio),
        .init("subtitles", \.options.renditions.subtitles, .languages, unless: standard.subtitles),
        .init("all", \.options.renditions.isEverything, .flag, unless: false),
        .init("last", \.options.last, .size),
        .init("atOnce", \.options.isAtOnce, .flag, unless: false),
        .init("title", \.title, .init("a string", value: { $0.beginning(500) }, sent: { $0 })),
        .init("for", \.options.recordFor, .span),
    ]
    private static let standard = RenditionChoice()

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members([Self.urlKey] + Self.members.map(\.name))
        guard let url = try members.decodeIfThere(String.self, forKey: Self.urlKey, form: "a media URL") else {
            throw ControlError(422, "\(decoder.place ?? "it") has no url: send the URL to download")
        }
        self.init(url: try OriginURL(ordered: url))
        for member in Self.members { try member.read(members, &self) }
        if options.bytesPerSecond == 0 { options.bytesPerSecond = nil }
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: BodyKey.self)
        try members.encode(url.absolute, forKey: Self.urlKey)
        for member in Self.members { try member.write(self, &members) }
    }
}

extension BodyForm<RenditionChoice.Languages> {
    fileprivate static var languages: Self {
        Self(RenditionChoice.Languages.forms, value: { RenditionChoice.Languages($0) }, sent: { $0.text })
    }
}
