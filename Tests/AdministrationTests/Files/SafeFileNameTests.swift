import Administration
import TestSupport
import Testing

@Suite struct SafeFileNameTests {
    @Test(arguments: [
        ("film.mp4", "film.mp4"), ("My Film.mp4", "My Film.mp4"), ("映画.mkv", "映画.mkv"),
        ("../../etc/passwd", "passwd"), ("/a/b.mp4", "b.mp4"), ("a/", "a"), ("a/\u{301}b.mp4", "\u{301}b.mp4"),
        (".bashrc", "bashrc"), (" . .hidden.mp4", "hidden.mp4"), (".\u{301}a.mp4", "\u{301}a.mp4"),
        ("film.mp4 \t", "film.mp4"),
        ("a\u{0}b\nc\u{1B}[31m.mp4", "abc[31m.mp4"), ("a\u{202E}4pm.exe", "a4pm.exe"),
        ("\u{FEFF}a\u{85}\u{2028}.mp4", "a.mp4"),
        ("family \u{1F468}\u{200D}\u{1F469}.mp4", "family \u{1F468}\u{200D}\u{1F469}.mp4"),
        ("-rf", "-rf"),
    ])
    func aNameIsMadeSafe(name: String, safe: String) {
        #expect(SafeFileName(name, url: "http://a/x.mp4").description == safe)
    }

    @Test(arguments: [nil, "", ".", "..", "...", "/", "\u{7}", " "])
    func withoutANameTheURLHasOne(name: String?) {
        #expect(SafeFileName(name, url: "http://a/vod/My%20Film.mp4?t=1#x").description == "My Film.mp4")
    }

    @Test(arguments: [
        ("http://a/", "download"), ("http://a", "download"), ("http://a/?x=/b.mp4", "download"), ("http://a/b/", "b"),
        ("http://a/%2E%2E", "download"),
        ("http://a/x%2Fy.mp4", "y.mp4"), ("http://a/%FF.mp4", "%FF.mp4"), ("http://a/100%.mp4", "100%.mp4"),
        ("http://a/%C5%99.mp4", "ř.mp4"),
        ("http://a.example:80/%00%0A.mp4", "mp4"),
    ])
    func aURLHasAName(url: String, name: String) {
        #expect(SafeFileName(nil, url: url).description == name)
    }

    @Test(arguments: [
        ("film", "video/mp4", "film.mp4"), ("film", "Audio/MPEG; x=y", "film.mp3"), ("film", "text/html", "film"),
        ("film", nil, "film"),
        ("film.avi", "video/mp4", "film.avi"),
        ("Episode 1. The Beginning", "video/x-matroska", "Episode 1. The Beginning.mkv"),
        ("v2.", "video/mp4", "v2..mp4"), ("a.verylongending", "video/mp4", "a.verylongending.mp4"),
    ])
    func aTypeGivesAnExtension(name: String, type: String?, expected: String) {
        let safe = SafeFileName(name, url: "http://a/x", type: type)
        #expect(safe.description == expected)
        #expect(safe.hasExtension == (expected.contains(".m") || expected.hasSuffix(".avi")))
    }

    @Test(arguments: ["e", "é", "映", "e\u{301}\u{302}", "\u{1F468}\u{200D}\u{1F469}"])
    func aLongNameIsCutBetweenCharacters(character: String) {
        let name = SafeFileName(String(repeating: character, count: 300) + ".mp4", url: "http://a/x")
        for (text, end) in [(name.description, ".mp4"), (name.numbered(12), " (12).mp4")] {
            #expect(text.utf8.count <= 255 && text.utf8.count > 255 - character.utf8.count, "\(text.utf8.count)")
            #expect(text.hasSuffix(end) && text.dropLast(end.count).allSatisfy { String($0) == character })
        }
    }

    /// One character may have any number of marks, so that there is nothing between two of them to cut.
    @Test(arguments: [("a", ".bashrc"), ("a", ""), ("\u{1F468}", ".mp4")]) func aCharacterThatIsTooLongIsCutItself(
        letter: String, suffix: String
    ) {
        let marks = String(repeating: "\u{301}", count: 130)
        let name = SafeFileName(letter + marks + suffix, url: "http://a/x")
        for (text, end) in [(name.description, suffix), (name.numbered(2), " (2)\(suffix)")] {
            #expect(
                254...255 ~= text.utf8.count && text.unicodeScalars.first == letter.unicodeScalars.first
                    && text.hasSuffix(end))
            #expect(Array((letter + marks).utf8).starts(with: text.utf8.dropLast(end.utf8.count)))
        }
    }

    @Test func whateverItIsCalledItIsAName() {
        var random = SplitMix64.forTest("whateverItIsCalledItIsAName")
        let scalars: [Unicode.Scalar] = [
            "a", "m", "4", ".", ".", " ", "/", "\u{301}", "\u{200D}", "\u{1F468}", "\u{7}", "\u{202E}", "\u{2028}",
            "\u{1F1E6}", "\u{E9}", "\u{1161}",
        ]
        for _ in 0..<2000 {
            var name = String.UnicodeScalarView()
            // Runs of one scalar are what graphemes that are long are made of.
            while name.count < 400, Int.random(in: 0..<12, using: &random) > 0 {
                let scalar = scalars.randomElement(using: &random) ?? "a"
                name.append(
                    contentsOf: repeatElement(
                        scalar, count: Bool.random(using: &random) ? 1 : Int.random(in: 1...140, using: &random)))
            }
            for type in [nil, "video/mp4"] {
                let safe = SafeFileName(String(name), url: "http://a/", type: type)
                for text in [safe.description, safe.numbered(2), safe.numbered(10_000)] {
                    #expect(
                        1...255 ~= text.utf8.count && text.unicodeScalars.first != "."
                            && !text.unicodeScalars.contains("/"), "\(String(name).debugDescription)")
                }
            }
        }
    }

    @Test func anotherOneHasANumber() {
        #expect(SafeFileName("a.b.mp4", url: "http://a/x").numbered(2) == "a.b (2).mp4")
        #expect(SafeFileName("a", url: "http://a/x").numbered(3) == "a (3)")
    }

    @Test(arguments: [
        ("x:y?.mp3", "x-y.mp3"), ("a\\b|c<d>*.mp4", "a-b-cd.mp4"), ("\"So\".mp3", "'So'.mp3"), ("Is it?", "Is it"),
        ("wait...", "wait"), ("a. . .", "a"), ("v2..mp4", "v2.mp4"), ("CON", "_CON"), ("nul.mp3", "_nul.mp3"),
        ("Lpt1.a.mp3", "_Lpt1.a.mp3"), ("com¹.mp3", "_com¹.mp3"), ("console.mp3", "console.mp3"),
        ("com0.mp3", "com0.mp3"),
        ("???", "download"), ("映画 – 1.mkv", "映画 – 1.mkv"),
    ])
    func aNameIsOneThatWindowsHas(name: String, safe: String) {
        let made = SafeFileName(name, url: "http://a/x").forWindows
        #expect(made.description == safe)
        #expect(FileNameRule(owner: "exFAT", isEnforced: true).objection(to: made.description) == nil)
    }

    /// Cut so that it does not end with a blank.
    @Test func aLongNameEndsForWindowsToo() {
        let name = SafeFileName(String(repeating: "a ", count: 200), url: "http://a/x").forWindows.description
        #expect(name.utf8.count > 250 && FileNameRule(owner: "exFAT", isEnforced: true).objection(to: name) == nil)
    }

    @Test(arguments: [
        ("x:y.mp3", "exFAT permits no ':' in names"), ("a\n.mp3", "exFAT permits no '\\n' in names"),
        ("a.", "exFAT permits no '.' at the end of names"), ("aux.mp3", "exFAT reserves that name"), ("a.mp3", nil),
    ])
    func aNameThatAFileSystemLacksIsExplained(name: String, objection: String?) {
        #expect(FileNameRule(owner: "exFAT", isEnforced: true).objection(to: name) == objection)
    }
}
