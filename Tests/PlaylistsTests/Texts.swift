import CachePolicy

@testable import Playlists

/// A playlist's text as bytes.
func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension [UInt8] {
    var text: String { String(decoding: self, as: UTF8.self) }
}

extension OriginURL {
    init(_ text: String) {
        do { self = try OriginURL(url: text) } catch { fatalError("\(text): \(error)") }
    }
}

extension HLSPlaylist {
    init(
        _ text: String, at base: String = "https://cdn.example/v/index.m3u8",
        importing variables: [String: String]? = nil
    ) throws(PlaylistError) {
        try self.init(bytes(text), at: OriginURL(base), importing: variables)
    }
}

extension ProxyForm {
    static let proxy = OriginURL("http://player.lan:7335")
    static let local = ProxyForm.path(at: proxy)
}

/// The error that reading ends with; nil where it goes well.
func failure(_ read: () throws -> Void) -> PlaylistError? {
    do {
        try read()
        return nil
    } catch { return error as? PlaylistError }
}
