import CachePolicy
import Testing

@testable import Presentations

@Suite struct SeriesNameTests {
    @Test(arguments: [
        ("/show-s01e01.mp4", "/show-s01e02.mp4"), ("/show-s01e09.mp4", "/show-s01e10.mp4"), ("/9.mp3", "/10.mp3"),
        ("/01/Track%2009.MP3", "/01/Track%2010.MP3"), ("/ep99.mkv", "/ep100.mkv"), ("/ep099.mkv", "/ep100.mkv"),
        ("/Episode%2003.mp3", "/Episode%2004.mp3"), ("/a%A003.mp3", "/a%A004.mp3"),
        ("/part-0001.ogg", "/part-0002.ogg"),
        ("/e1999.mp3", "/e2000.mp3"), ("/a-1800.mp3", "/a-1801.mp3"),
    ])
    func theNextNumberHasTheSameWidth(path: String, next: String) throws {
        let url = try OriginURL(url: "https://h.example:8443" + path)
        #expect(SeriesName.next(after: url)?.absolute == "https://h.example:8443" + next)
    }

    @Test(arguments: [
        "/film.mp4", "/film-2019.mp4", "/03 - title.mp3", "/show-s01e01.1080p.mp4", "/a-1699999999.mp4", "/seg-001.ts",
        "/1.m4s", "/1.m3u8", "/1.jpg", "/1", "/1.mp4?token=5", "/", "/.mp4", "/a%20.mp3", "/a%2012345.mp3", "/12/.mp3",
    ])
    func otherNamesHaveNoNext(path: String) throws {
        #expect(
            try SeriesName.next(after: OriginURL(url: "https://h.example" + path.replacing(" ", with: "%20"))) == nil)
    }
}
