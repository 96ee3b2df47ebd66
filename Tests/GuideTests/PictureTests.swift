import Foundation
import Testing

/// The README's picture, which `scripts/picture` generates.
@Suite struct PictureTests {
    private let text: String

    init() throws { text = try Documents.text("docs/images/reelcache.svg") }

    @Test(arguments: ["docs/images/reelcache.svg", "docs/images/cluster.svg"])
    func isSmallAndNeedsNothingElse(path: String) throws {
        let text = try Documents.text(path)
        #expect(text.utf8.count < 60_000)
        #expect(try XMLReader.isWellFormed(text))
        // No external fonts or pictures, and no scripts.
        for foreign in ["url(", "@import", "@font-face", "<image", "<script", "href="] {
            #expect(!text.contains(foreign), "\(foreign)")
        }
    }

    @Test func isMadeForLightAndDark() {
        #expect(text.contains("prefers-color-scheme:dark"))
        #expect(text.contains("prefers-reduced-motion"))
    }

    /// What people see who see no animation has all commands, those of the title.
    @Test func lastFrameHasEachCommand() throws {
        let title = try #require(text.firstMatch(of: /are run: (.*)<\/title>/)).1
        let last = try #require(text.split(separator: "\n").last { $0.hasPrefix("<g id=") })
        #expect(!last.contains("hidden"))
        let commands = title.components(separatedBy: "; ")
        #expect(commands.count >= 3)
        for command in commands { #expect(last.contains("$</tspan> \(command)</text>"), "\(command)") }
    }
}

/// Whether elements end in the order in which they begin.
private enum XMLReader {
    static func isWellFormed(_ text: String) throws -> Bool {
        var open: [Substring] = []
        for tag in text.matches(of: /<(\/?)([a-z]+)[^<>]*?(\/?)>/) {
            if tag.1 == "/" {
                guard open.popLast() == tag.2 else { return false }
            } else if tag.3.isEmpty {
                open.append(tag.2)
            }
        }
        return open.isEmpty
    }
}
