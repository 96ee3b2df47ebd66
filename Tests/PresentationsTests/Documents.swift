import CachePolicy
import DiskCache
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

    convenience init(
        _ text: [UInt8], key: CacheKey, url: OriginURL, base: OriginURL, importing: [String: String]? = nil
    ) throws(PlaylistError) {
        try self.init(
            text, key: key, url: url, base: base, importing: importing, within: WorkBudget(bytes: text.count))
    }

    convenience init(
        feed text: [UInt8], type: String?, key: CacheKey, url: OriginURL, base: OriginURL,
        generation: GenerationID? = nil
    ) throws(FeedError) {
        try self.init(
            feed: text, type: type, key: key, url: url, base: base, generation: generation,
            within: WorkBudget(bytes: text.count))
    }
}

extension PlaylistShelf {
    @discardableResult
    func put(_ document: PlaylistDocument, at now: Duration) -> (whole: CacheKey, joined: [CacheKey]) {
        put(document, at: now, within: WorkBudget(bytes: document.text.count))
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
