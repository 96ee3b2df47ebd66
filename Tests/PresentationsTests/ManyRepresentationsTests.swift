import Activity
import CLinux
import CachePolicy
import Playlists
import Testing

@testable import Presentations

/// MPDs in which few bytes stand for much: parts that many representations inherit.
@Suite struct ManyRepresentationsTests {
    private static let proxy = "https://cdn.example/v/"

    private static func mpd(_ common: String, _ representations: some Sequence<String>) -> String {
        "<MPD mediaPresentationDuration=\"PT1H\"><Period><AdaptationSet>\(common)" + representations.joined()
            + "</AdaptationSet></Period></MPD>"
    }

    /// - Returns: the steps, and the position found.
    private func steps(_ shelf: PlaylistShelf, _ name: String) -> (steps: Int, id: Int?, position: Int?) {
        let budget = WorkBudget(bytes: 0)
        let place = shelf.membership(of: OriginURL(Self.proxy + name), at: nil, within: budget) { .zero }?.place
        return (budget.steps, place?.rendition.representation?.representation, place?.position)
    }

    @Test func aRequestIsFoundByHash() throws {
        let representations = (0..<2000).map { "<Representation id=\"\($0)\"/>" }
        for media in [
            "$RepresentationID$/$Number$.m4s", "$Number$-$RepresentationID$.m4s", "$Time$/$RepresentationID$",
        ] {
            let shelf = PlaylistShelf()
            shelf.put(
                try PlaylistDocument(
                    Self.mpd("<SegmentTemplate duration=\"2\" media=\"\(media)\"/>", representations)), at: .zero)
            let wanted = media.replacing("$RepresentationID$", with: "1234").replacing("$Number$", with: "7")
                .replacing("$Time$", with: "12")
            let found = steps(shelf, wanted)
            #expect(found.id == 1234 && found.position == 6 && found.steps < 1000, "\(media) \(found)")
            let other = steps(shelf, "film.mp4")
            #expect(other.id == nil && other.steps < 200, "\(other)")
        }
    }

    /// Periods with the same addresses are told apart by their numbers.
    @Test func aRequestIsFoundAmongPeriods() throws {
        let periods = (0..<300).map { number in
            """
            <Period duration="PT4S"><AdaptationSet><SegmentTemplate duration="2" startNumber="\(number * 2 + 1)" \
            media="$RepresentationID$/$Number$"/><Representation id="a"/></AdaptationSet></Period>
            """
        }
        let shelf = PlaylistShelf()
        shelf.put(try PlaylistDocument("<MPD>" + periods.joined() + "</MPD>"), at: .zero)
        for number in [1, 2, 301, 600] {
            let place = try #require(
                shelf.membership(of: OriginURL(Self.proxy + "a/\(number)"), at: nil) { .zero }?.place)
            #expect(place.rendition.representation?.period == (number - 1) / 2 && place.position == (number - 1) % 2)
        }
        #expect(steps(shelf, "a/301").steps < 10_000)
    }

    @Test func listsAndInitializationsAreFound() throws {
        let list = """
            <SegmentList duration="2"><Initialization sourceURL="init.mp4"/><SegmentURL media="a.mp4"/>\
            <SegmentURL media="/b?x=1"/><SegmentURL media="https://other.example/c" mediaRange="10-19"/>\
            <SegmentURL media="https://other.example/c" mediaRange="20-29"/></SegmentList>
            """
        let shelf = PlaylistShelf()
        shelf.put(
            try PlaylistDocument(
                Self.mpd(
                    list, ["x/", "y/"].map { "<Representation id=\"\($0)\"><BaseURL>\($0)</BaseURL></Representation>" })
            ), at: .zero)
        let found = { (url: String, byte: Int64?) in shelf.membership(of: OriginURL(url), at: byte) { .zero } }
        #expect(found(Self.proxy + "y/a.mp4", nil)?.place?.rendition.representation?.representation == 1)
        #expect(found("https://cdn.example/b?x=1", nil)?.place?.position == 1)
        #expect(found("https://other.example/c", 25)?.place?.position == 3)
        #expect(found("https://other.example/c", 35) == nil)
        let first = try #require(found(Self.proxy + "x/init.mp4", nil))
        #expect(first.place == nil && first.kind == .media)
        #expect(found(Self.proxy + "z/init.mp4", nil) == nil)
    }

    // Of 64 KiB each: what one half states, for as many representations as the other half has room for.
    private static let products: [String] = [
        mpd(
            "<SegmentTemplate media=\"$Number$\"><SegmentTimeline>"
                + String(repeating: "<S d=\"1\"/><S d=\"2\"/>", count: 1400) + "</SegmentTimeline></SegmentTemplate>",
            repeatElement("<Representation/>", count: 1900)),
        mpd(
            "<SegmentTemplate duration=\"2\" media=\"$Number$/\(String(repeating: "$$x", count: 10_000))\"/>",
            repeatElement("<Representation/>", count: 1900)),
        mpd(
            "<SegmentList duration=\"2\">" + (0..<1000).map { "<SegmentURL media=\"\($0)\"/>" }.joined()
                + "</SegmentList>", repeatElement("<Representation/>", count: 1900)),
        mpd(
            (0..<16).map { "<BaseURL>\(String(repeating: "x", count: 80))\($0)/</BaseURL>" }.joined(),
            repeatElement("<Representation><BaseURL>a</BaseURL></Representation>", count: 1000)),
    ]

    /// In a process of its own: what others allocate would be counted, too.
    @Test func memoryFollowsTheText() async throws {
        await #expect(processExitsWith: .success) {
            for text in ManyRepresentationsTests.products {
                let shelf = PlaylistShelf()
                let before = ManyRepresentationsTests.allocated
                do { shelf.put(try PlaylistDocument(text), at: .zero) } catch { fatalError("\(error)") }
                let used = ManyRepresentationsTests.allocated - before
                precondition(used < 96 * text.utf8.count, "\(used) bytes for a text of \(text.utf8.count)")
                precondition(used < 2 * shelf.weight, "\(used) bytes, said to be \(shelf.weight)")
            }
        }
    }

    /// A long base, resolved for each of many short ones below it.
    @Test func basesAreBoundedInAll() {
        let text = Self.mpd(
            "<BaseURL>\(String(repeating: "x", count: 16_000))/</BaseURL>",
            repeatElement("<Representation><BaseURL>a</BaseURL></Representation>", count: 900))
        #expect(throws: PlaylistError.self) { try PlaylistDocument(text) }
    }

    private static var allocated: Int {
        let info = mallinfo2()
        return Int(info.uordblks + info.hblkhd)
    }
}
