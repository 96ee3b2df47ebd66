import ReelcacheCLI
import Testing

/// How a line of bash is read, and what bash is given for it.
@Suite struct BashLineTests {
    @Test(
        arguments: [
            ("reelcache ", "", [], ""), ("reelcache sh", "sh", [], "sh"),
            ("reelcache show  https://exam", "//exam", ["show"], "https://exam"),
            (#"reelcache rm 'a b' "c\"d" e\ f g"#, "g", ["rm", "a b", #"c"d"#, "e f"], "g"),
            (#"reelcache show "https://exam"#, "https://exam", ["show"], "https://exam"),
            ("reelcache rm '' x", "x", ["rm", ""], "x"),
            ("LC_ALL=C A=1 reelcache ls --sort=na", "na", ["ls"], "--sort=na"),
            (#"reelcache rm "a\b" 'c\'"#, "", ["rm", #"a\b"#], #"c\"#),
        ] as [(String, String, [String], String)])
    func wordsAreThoseOfTheShell(line: String, replaced: String, words: [String], current: String) {
        let line = BashLine(line, replacing: replaced)
        #expect(line.words == words && line.current == current)
    }

    @Test(arguments: [
        // Behind the colon, as bash breaks words there.
        ("reelcache show https://exam", "//exam", "https://example.org/a", "//example.org/a"),
        ("reelcache show https:", "", "https://example.org/a", "//example.org/a"),
        ("reelcache show ht", "ht", "https://a/b?c=1&d=é", #"https://a/b\?c=1\&d=é"#),
        (#"reelcache show https://a/b\?c="#, "", "https://a/b?c=1&d", #"1\&d"#),
        (#"reelcache show https://a/b\?c=1\&"#, #"1\&"#, "https://a/b?c=1&d", #"1\&d"#),
        // In quotes nothing breaks.
        (#"reelcache show "https://a/b?"#, "https://a/b?", "https://a/b?c=$1&d", #"https://a/b?c=\$1&d"#),
        ("reelcache show 'https://a/b?", "https://a/b?", "https://a/b?c=$1&'d", #"https://a/b?c=$1&'\''d"#),
        ("reelcache ls --sort=na", "na", "--sort=name", "name"), ("reelcache ls --so", "--so", "--sort", "--sort"),
    ])
    func aReplyIsWhatBashPutsInThePlaceOfItsWord(line: String, replaced: String, candidate: String, reply: String) {
        #expect(BashLine(line, replacing: replaced).reply(candidate) == reply)
    }

    @Test func whatDoesNotGoOnFromTheLineIsNoReply() {
        #expect(BashLine("reelcache show https:", replacing: "").reply("http://example.org/") == nil)
    }
}
