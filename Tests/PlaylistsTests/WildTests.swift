import CachePolicy
import Foundation
import HTTPModel
import Presentations
import Testing

@testable import Playlists

/// What servers really send: `Tests/Fixtures/Wild` has the inputs, and a table of the right answers.
@Suite struct WildTests {
    private static let room = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../Fixtures/Wild").standardized
    private static let kinds = ["feeds", "lists", "manifests", "playlists"]
    private static let types = [
        "m3u": "audio/x-mpegurl", "m3u8": "application/vnd.apple.mpegurl", "mpd": "application/dash+xml",
        "pls": "audio/x-scpls", "xml": "text/xml",
    ]
    private static let codings = ["deflate": "deflate", "gz": "gzip"]

    /// The table's rows for these kinds: the name of a file, and the right answer.
    private static let entries: [[String]] = {
        let table = (try? String(contentsOf: room.appendingPathComponent("README.md"), encoding: .utf8)) ?? ""
        return table.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 3, cells[0].hasPrefix("`") else { return nil }
            let name = cells[0].filter { $0 != "`" }
            return kinds.contains { name.hasPrefix("\($0)/") } ? [name, cells[2]] : nil
        }
    }()

    @Test func eachFileHasItsEntry() throws {
        let files = try Self.kinds.flatMap { kind in
            try FileManager.default.contentsOfDirectory(atPath: Self.room.appendingPathComponent(kind).path)
                .map { "\(kind)/\($0)" }
        }
        #expect(files.sorted() == Self.entries.map { $0[0] }.sorted())
    }

    @Test(arguments: entries) func eachFileIsReadAsItsEntrySays(entry: [String]) throws {
        #expect(try Self.answer(to: entry[0]) == entry[1])
    }

    /// Reads a file as `PlaylistReading` does, and says what it is.
    private static func answer(to name: String) throws -> String {
        let bytes = Array(try Data(contentsOf: room.appendingPathComponent(name)))
        let endings = name.split(separator: ".").dropFirst().map(String.init)
        var fields = HeaderFields()
        for coding in endings.compactMap({ codings[$0] }) { fields.append("Content-Encoding", coding) }
        let text: [UInt8]
        do { text = try ContentCoding.decoded(bytes, fields) } catch { return "refused: \(error)" }
        let url = OriginURL("https://origin.example/wild/\(name)"), type = endings.first.flatMap { types[$0] }
        if PlaylistKind.sniff(text) == nil, FeedRecognition.isFeed(text, type: type) {
            return try answer(to: Feed(reading: text, at: url, type: type))
        }
        let document = try PlaylistDocument(text, key: url.cacheKey, url: url, base: url, within: .large)
        return try answer(to: document) + proxied(document.edits(for: .local, at: ProxyForm.local(url), within: .large))
    }

    private static func answer(to feed: Feed) throws -> String {
        let items = feed.cut == nil ? "\(feed.items.count)" : "not all"
        let isList = feed.kind == .pls || feed.kind == .m3u
        return (isList ? "list: \(items) file" : "feed “\(feed.title ?? "")”: \(items) item")
            + (feed.items.count == 1 ? "" : "s") + proxied(try feed.edits(for: .local, at: ProxyForm.local(feed.url)))
    }

    private static func answer(to document: PlaylistDocument) throws -> String {
        switch document.content {
        case .dash(let mpd): return "manifest: \(mpd.representations.count) representations"
        case .hls(let playlist):
            if let multivariant = playlist.multivariant {
                return "multivariant: \(multivariant.playlists.count) playlists"
            }
            guard let media = playlist.media else {
                return "list: \(playlist.addresses.count) file" + (playlist.addresses.count == 1 ? "" : "s")
            }
            let note = try PresentationPlan(document, RenditionChoice()).note()
            return "media: \(media.segments.count) segments, \(media.hasEnd ? "ended" : "live")"
                + (note?.contains("licence") == true ? ", with a licence" : "")
        case .feed: return "feed"
        }
    }

    private static func proxied(_ edits: [AddressEdit]) -> String {
        let led = edits.filter { $0.replacement.contains("player.lan:7335/https/") }.count
        return "; \(led) address\(led == 1 ? "" : "es") through the proxy"
    }
}
