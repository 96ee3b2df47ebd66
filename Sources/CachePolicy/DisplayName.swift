import HTTPModel

/// What people call a resource or a download, on one line: the title that its feed, playlist or resolver gives it,
/// otherwise the file name that its origin gives, otherwise what tells its URL apart.
package struct DisplayName: Sendable, Equatable, CustomStringConvertible {
    package let description: String

    /// In scalars.
    private static let longest = 500

    /// - Parameters:
    ///   - title: nil if none is known.
    ///   - fileName: of `Content-Disposition`; nil if there is none.
    ///   - url: perhaps with secrets masked.
    package init(title: String?, fileName: String? = nil, url: String) {
        let given = [title, fileName.map(Self.lastPart)].lazy.compactMap { $0.map(Self.line) }.first { !$0.isEmpty }
        description = (given ?? Self.line(Self.name(of: url))).printable(upTo: Self.longest, keepsJoiners: true)
    }

    /// A title that goes over several lines is one line here.
    private static func line(_ text: String) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private static func lastPart(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? "" }

    /// The last part of a URL's path; with the folder before it if many streams, or many files of one host, are
    /// called that, or with the query if that is what tells files apart. The host if there is no path.
    private static func name(of text: String) -> String {
        guard let url = try? OriginURL(url: text) else { return text }
        let target = url.pathAndQuery.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let parts = target[0].split(separator: "/").map { decoded($0) }
        guard let last = parts.last else { return url.host }
        guard isGeneric(last) else { return last }
        if target.count > 1, !isPlaylist(last) { return "\(last)?\(target[1])" }
        let folder = parts.dropLast().last { !isGeneric($0) } ?? url.host
        return "\(folder)/\(last)"
    }

    private static func decoded(_ part: Substring) -> String {
        PercentEncoding.decoded(part.utf8).flatMap { String(validating: $0, as: UTF8.self) } ?? String(part)
    }

    private static func isPlaylist(_ name: String) -> Bool {
        ["m3u8", "m3u", "mpd"].contains(name.split(separator: ".").last.map { $0.lowercased() } ?? "")
    }

    /// Whether many files of one host, or of many, are called that.
    private static func isGeneric(_ name: String) -> Bool { generic.contains(name.prefix { $0 != "." }.lowercased()) }

    private static let generic: Set<String> = [
        "audio", "chunklist", "default", "download", "dash", "episode", "file", "hls", "index", "main", "manifest",
        "master", "media", "play", "playlist", "prog_index", "stream", "video",
    ]
}
