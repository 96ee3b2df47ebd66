import ControlAPI
import Downloads
import ReelcacheCLI
import Testing

@Suite struct FeedTableTests {
    private func lines(_ width: Int?, isLong: Bool = false) throws -> [String] {
        let json = """
            [{"url": "https://feeds.example.org/casts/83d1/podcast.xml", "title": "A Talk About Old Films", "latest": 3,
              "every": 3600, "keep": "until-played", "added": 0, "checked": 7000, "next_check": 0, "failures": 0,
              "episodes": 120, "ordered": 14, "unfinished": 2, "failed": 0}]
            """
        let feeds = try ControlJSON.decode([FeedSubscription].self, from: Array(json.utf8))
        return FeedTable(width: width, isUnicode: true, now: 10_600).list(feeds, isLong: isLong)
    }

    @Test(arguments: [
        (80, false, " 1       14   120       2  1 h ago      until-played  A Talk About Old Films"),
        (40, false, " 1       14  A Talk About Old Films"),
        (80, true, " 1  A Talk About Old Films       14   120       2  https://fe…s/83d1/podcast.xml"),
        (40, true, " 1  https://feed…/casts/83d1/podcast.xml"),
    ])
    func terminalHasTitlesFirstAndURLsIfWanted(width: Int, isLong: Bool, row: String) throws {
        let lines = try lines(width, isLong: isLong)
        #expect(lines[1] == row, "\(lines)")
    }

    @Test func pipeHasBoth() throws {
        let row = try lines(nil)[1]
        #expect(row.contains("A Talk About Old Films  ") && row.hasSuffix("/casts/83d1/podcast.xml"))
    }
}
