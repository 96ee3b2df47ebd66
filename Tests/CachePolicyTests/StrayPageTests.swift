import CachePolicy
import HTTPModel
import Testing

@Suite struct StrayPageTests {
    @Test(
        arguments: [
            ("text/html", true), ("text/html; charset=utf-8", true), ("TEXT/HTML ;x", true),
            ("application/xhtml+xml", true), ("text/vnd.wap.wml", true),
            ("video/mp4", false), ("text/plain", false), ("application/json", false), ("text/htmlx", false),
            ("", false), (";text/html", false), (nil, false),
        ] as [(String?, Bool)])
    func pageIsToldByItsType(type: String?, isPage: Bool) {
        #expect(
            StrayPage.isPage(type.map { HeaderFields([.init(name: "Content-Type", value: $0)]) } ?? HeaderFields())
                == isPage)
    }

    private static let tail = [UInt8](repeating: 0x61, count: 600)

    // What media begins with, and what pages do.
    @Test(
        arguments: [
            ([0x47, 0x40, 0x11, 0x10, 0x00], true), (Array("\0\0\0\u{18}ftypiso5".utf8), true),
            (Array("\0\0\0\u{18}stypmsdh".utf8), true), ([0x1A, 0x45, 0xDF, 0xA3], true),
            (Array("ID3\u{4}\0".utf8), true), ([0xFF, 0xF1, 0x50, 0x80, 0x02], true), (Array("WEBVTT\n".utf8), true),
            (Array("\u{FEFF}WEBVTT".utf8), true), (Array("\n#EXTM3U\n".utf8), true), (Array("<MPD>".utf8), true),
            (Array("<a".utf8) + (0..<510).map { UInt8($0 * 31 % 256) }, true), (Array("OggS\0".utf8), true),
            (Array("<!DOCTYPE html><p>".utf8), false), (Array("\n<html>".utf8), false),
            (Array("<p>One character too many:\u{8}".utf8), false),
            (Array("Not found".utf8), false), (Array("Gone\u{1B}[0m".utf8), false), ([0xFF, 0xFE, 0x3C, 0x00], false),
            ([0x1F, 0x8B, 0x08, 0x00], false), ([], false),
        ] as [([UInt8], Bool)])
    func mediaIsToldFromPagesByItsBeginning(bytes: [UInt8], isMedia: Bool) {
        #expect(StrayPage.isMedia(beginning: bytes, isAll: true, length: nil) == isMedia)
        #expect(StrayPage.isMedia(beginning: bytes + Self.tail, isAll: false, length: nil) == isMedia)
        // Fewer bytes do not tell the opposite.
        for count in 0...bytes.count {
            let early = StrayPage.isMedia(beginning: bytes.prefix(count), isAll: false, length: nil)
            #expect(early == nil || early == isMedia, "\(count)")
        }
    }

    // By chance, a key may have no byte that a text does not have.
    @Test func keyIsToldByItsLength() {
        let key = (0..<16).map { UInt8($0 * 8 + 0x60) }
        #expect(StrayPage.isMedia(beginning: key, isAll: true, length: 16) == true)
        #expect(StrayPage.isMedia(beginning: key, isAll: true, length: 17) == false)
        #expect(StrayPage.isMedia(beginning: Array("Please pay first".utf8), isAll: true, length: 16) == false)
    }

    @Test(arguments: [
        ("/film.mp4", true), ("/a/b/FILM.MP4?x=1", true), ("/show.m3u8", true), ("/s/init.cmfv", true), ("/1.ts", true),
        ("/de.vtt", true), ("/.mkv", true),
        ("/", false), ("/watch", false), ("/watch?v=film.mp4", false), ("/film.mp4/", false), ("/film.mp4.html", false),
        ("/mp4", false), ("/film.", false),
        ("/a.mp4/info", false),
    ])
    func mediaIsToldByItsExtension(path: String, isMedia: Bool) throws {
        #expect(StrayPage.expectsMedia(at: try OriginURL(url: "https://example.org\(path)")) == isMedia)
    }

    @Test(arguments: [
        ("video", true), ("Audio", true), ("track", true), ("document", false), ("iframe", false), ("empty", false),
    ])
    func mediaIsToldByTheElementThatItIsFor(destination: String, isMedia: Bool) throws {
        #expect(
            StrayPage.expectsMedia(
                at: try OriginURL(url: "https://example.org/watch"), destination: destination) == isMedia)
    }

    @Test(
        arguments: [
            ("video/mp4", true), ("Audio/MPEG; x=1", true), ("image/png", true), ("application/octet-stream", true),
            ("application/vnd.apple.mpegurl", true), ("application/rss+xml; charset=utf-8", true),
            ("application/atom+xml", true), ("text/xml", false),
            ("text/html", false), ("application/json", false), ("text/plain", false), (nil, false),
        ] as [(String?, Bool)])
    func storedMediaIsToldByItsType(type: String?, isMedia: Bool) {
        #expect(
            StrayPage.isMedia(type.map { HeaderFields([.init(name: "Content-Type", value: $0)]) } ?? HeaderFields())
                == isMedia)
    }
}
