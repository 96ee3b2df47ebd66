import ReelcacheCLI
import Testing

@Suite struct ReadableURLTests {
    @Test(arguments: [
        ("https://a/Gr%C3%BC%C3%9Fe.mp4", "https://a/Grüße.mp4"),
        ("https://a/%E6%98%A0%E7%94%BB.mp4?q=%c3%a4", "https://a/映画.mp4?q=ä"),
        // A mark on a letter (NFD).
        ("https://a/Gru%CC%88n", "https://a/Gru\u{308}n"), ("https://a/%F0%9F%98%80", "https://a/😀"),
        ("https://a/plain.mp4", "https://a/plain.mp4"), ("", ""),
    ])
    func whatPeopleReadIsDecoded(url: String, text: String) {
        #expect(url.readableURL.unicodeScalars.elementsEqual(text.unicodeScalars), "\(url.readableURL)")
    }

    @Test(arguments: [
        // ASCII: it would mean something else, or nobody could copy it.
        "https://a/b%20c", "https://a/b%2Fc", "https://a/%25C3%25BC", "https://a/%1B%5B31m", "https://a/%0A",
        // Not UTF-8, or no encoded byte.
        "https://a/%FC", "https://a/%C3", "https://a/%C3%28", "https://a/%C3%B", "https://a/%", "https://a/%ED%A0%80",
        "https://a/%C0%AF", "https://a/%+3%+3",
        // Controls, bidirectional and other format characters, spaces, what looks like another character, a mark on a
        // slash.
        "https://a/%C2%85", "https://a/%E2%80%AEgpj.exe", "https://a/%E2%80%8B", "https://a/%C2%A0",
        "https://a/%E2%80%A8", "https://a/%E2%88%95b",
        "https://a/%EF%BC%8Fb", "https://a/%CC%B8b", "https://a/%EE%80%80", "https://a/%F4%8F%BF%BF",
    ])
    func whatIsNotSafeStaysEncoded(url: String) {
        #expect(url.readableURL == url)
    }

    /// Wherever it is cut, each escape is there as a whole or not at all.
    @Test func urlIsCutBetweenEscapes() {
        let url = "https://a.example/%20%21%22%23%24%25%26%27%28%29%2A%2B/%5B%5C%5D%5E%5F%60%61%62%63%64"
        for width in 3..<url.count {
            let cut = url.cutInsideURL(toColumns: width, isUnicode: true)
            let parts = cut.split(separator: "…", omittingEmptySubsequences: false)
            #expect(parts.count == 2 && cut.count <= width, "\(cut)")
            #expect(url.hasPrefix(parts[0]) && url.hasSuffix(parts[1]), "\(cut)")
            for end in [url.dropFirst(parts[0].count), parts[1]] {
                // What is left begins with no part of an escape.
                let before = url.dropLast(end.count).suffix(2)
                #expect(!before.contains("%"), "\(cut)")
            }
        }
        #expect(url.cutInsideURL(toColumns: 200, isUnicode: true) == url)
    }
}
