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
    private enum Member: String, CodingKey, CaseIterable {
        case url, first, limitRate, priority, connections, category, pinned, quality, audio, subtitles, all
        case last, atOnce, title
        case recordFor = "for"
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(Member.self)
        guard let url = try members.decodeIfThere(String.self, forKey: .url, form: "a media URL") else {
            throw ControlError(422, "\(decoder.place ?? "it") has no url: send the URL to download")
        }
        self.init(url: try OriginURL(ordered: url))
        func flag(_ key: Member) throws -> Bool? {
            try members.decodeIfThere(Bool.self, forKey: key, form: "true or false")
        }
        func text<Value>(_ key: Member, _ form: String, _ read: (String) -> Value?) throws -> Value? {
            try members.decodeIfThere(String.self, forKey: key, form: form) { read($0) != nil }.flatMap(read)
        }
        typealias Languages = RenditionChoice.Languages
        options.first = try members.decodeIfThere(ReceivedSize.self, forKey: .first)?.bytes
        options.last = try members.decodeIfThere(ReceivedSize.self, forKey: .last)?.bytes
        let rate = try members.decodeIfThere(ReceivedSize.self, forKey: .limitRate)?.bytes
        options.bytesPerSecond = rate == 0 ? nil : rate
        options.priority =
            try members.decodeIfThere(Download.Priority.self, forKey: .priority, form: Download.Priority.form)
            ?? options.priority
        options.connections =
            try members.decodeIfThere(Int.self, forKey: .connections, form: "a whole number") ?? options.connections
        options.category = try members.decodeIfThere(String.self, forKey: .category, form: "a string")
        title = try members.decodeIfThere(String.self, forKey: .title, form: "a string").map { $0.beginning(500) }
        options.isPinned = try flag(.pinned) ?? options.isPinned
        options.isAtOnce = try flag(.atOnce) ?? options.isAtOnce
        let standard = options.renditions
        options.renditions = RenditionChoice(
            quality: try text(.quality, RenditionChoice.Quality.forms, RenditionChoice.Quality.init)
                ?? standard.quality,
            audio: try text(.audio, Languages.forms, Languages.init) ?? standard.audio,
            subtitles: try text(.subtitles, Languages.forms, Languages.init) ?? standard.subtitles,
            isEverything: try flag(.all) ?? standard.isEverything)
        options.recordFor = try members.decodeIfThere(ReceivedSpan.self, forKey: .recordFor)?.seconds
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Member.self)
        try members.encode(url.absolute, forKey: .url)
        try members.encodeIfPresent(title, forKey: .title)
        try members.encodeIfPresent(options.first, forKey: .first)
        try members.encodeIfPresent(options.last, forKey: .last)
        try members.encodeIfPresent(options.bytesPerSecond, forKey: .limitRate)
        try members.encode(options.priority, forKey: .priority)
        try members.encode(options.connections, forKey: .connections)
        try members.encodeIfPresent(options.category, forKey: .category)
        try members.encode(options.isPinned, forKey: .pinned)
        if options.isAtOnce { try members.encode(true, forKey: .atOnce) }
        let choice = options.renditions, standard = RenditionChoice()
        if choice.quality != standard.quality { try members.encode(choice.quality.text, forKey: .quality) }
        if choice.audio != standard.audio { try members.encode(choice.audio.text, forKey: .audio) }
        if choice.subtitles != standard.subtitles { try members.encode(choice.subtitles.text, forKey: .subtitles) }
        if choice.isEverything { try members.encode(true, forKey: .all) }
        try members.encodeIfPresent(options.recordFor, forKey: .recordFor)
    }
}
