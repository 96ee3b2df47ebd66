import CachePolicy
import Playlists

@testable import Presentations

extension OriginURL {
    init(_ text: String) {
        do { self = try OriginURL(url: text) } catch { fatalError("\(text): \(error)") }
    }
}

extension PlaylistDocument {
    /// A playlist as its origin has it.
    convenience init(
        _ text: String, at address: String = "https://cdn.example/v/main.m3u8", importing: [String: String]? = nil
    ) throws(PlaylistError) {
        let url = OriginURL(address)
        try self.init(Array(text.utf8), key: url.cacheKey, url: url, base: url, importing: importing)
    }
}

extension PresentationItem {
    /// `segment 2.ts`, `segment film.mp4 100..<300 x3`
    var text: String {
        let name = url.pathAndQuery.split(separator: "/").last.map(String.init) ?? ""
        let range = range.map { " \($0)" } ?? ""
        return "\(kind.rawValue) \(name)\(range)" + (segments > 1 ? " x\(segments)" : "")
    }
}
