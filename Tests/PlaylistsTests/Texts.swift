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
        let text = bytes(text)
        try self.init(text, at: OriginURL(base), importing: variables, within: WorkBudget(bytes: text.count))
    }

    init(_ bytes: [UInt8], at base: OriginURL) throws(PlaylistError) {
        try self.init(bytes, at: base, within: WorkBudget(bytes: bytes.count))
    }

    var segments: MediaPlaylistSegments? { (try? segments(within: .large)).flatMap(\.self) }

    func edits(for form: ProxyForm, at client: OriginURL) throws(PlaylistError) -> [AddressEdit] {
        try edits(for: form, at: client, within: .large)
    }
}

// What takes a budget, with one that does not matter.

extension WorkBudget {
    /// That of a text of a megabyte.
    static var large: WorkBudget { WorkBudget(bytes: 1 << 20) }
}

extension MultivariantPlaylist {
    func edits(keeping kept: Set<OriginURL>) throws(PlaylistError) -> [AddressEdit]? {
        try edits(keeping: kept, within: .large)
    }
}

extension MPD {
    init(_ bytes: [UInt8], at base: OriginURL) throws(PlaylistError) {
        try self.init(bytes, at: base, within: WorkBudget(bytes: bytes.count))
    }

    func edits(for form: ProxyForm, at client: OriginURL) throws(PlaylistError) -> [AddressEdit] {
        try edits(for: form, at: client, within: .large)
    }

    func edits(keeping kept: Set<RepresentationID>) throws(PlaylistError) -> [AddressEdit]? {
        try edits(keeping: kept, within: .large)
    }
}

extension SegmentSequence {
    func position(of url: OriginURL, at byte: Int64?) -> Int? {
        (try? position(of: url, at: byte, within: .ofMatch)).flatMap(\.self)
    }
}

extension Feed {
    init(
        reading bytes: [UInt8], at url: OriginURL, type: String? = nil,
        isPage: @escaping (OriginURL) -> Bool = { _ in false }
    ) throws(FeedError) {
        try self.init(reading: bytes, at: url, type: type, isPage: isPage, within: WorkBudget(bytes: bytes.count))
    }

    func edits(for form: ProxyForm, at client: OriginURL) throws(FeedError) -> [AddressEdit] {
        try edits(for: form, at: client, within: .large)
    }
}

extension OPML {
    init(reading bytes: [UInt8]) throws(FeedError) {
        try self.init(reading: bytes, within: WorkBudget(bytes: bytes.count))
    }
}

extension PlaybackOrder {
    init(of feed: Feed) { self.init(of: feed, within: .large) }

    init(ofList files: [OriginURL]) { self.init(ofList: files, within: .large) }

    func next(after url: OriginURL) -> Next { next(after: url, within: .ofMatch) }

    func contains(_ url: OriginURL) -> Bool { contains(url, within: .ofMatch) }
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
