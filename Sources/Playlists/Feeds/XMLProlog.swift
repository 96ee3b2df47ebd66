import CachePolicy
import HTTPModel

/// The text before the first element of a feed: a byte order mark, white space, a declaration, and misplaced output.
enum XMLProlog {
    /// Within how many bytes the first element of a feed, or its declaration, must begin.
    private static let longest = 8192
    private static let roots = ["<rss", "<feed", "<rdf:rdf", "<channel", "<opml", "<playlist", "<atom:feed"]
    /// The names of roots without a prefix.
    private static let names = ["rss", "feed", "rdf", "channel", "opml", "playlist"]

    /// Where the XML begins.
    static func start(of bytes: [UInt8]) -> Int {
        let blank = blank(bytes)
        let root = roots.compactMap { place(of: $0, in: bytes, upTo: longest) }.min()
        // A warning from the server's software, or a comment, may precede it.
        if let declaration = place(of: "<?xml ", in: bytes, upTo: root ?? longest) { return declaration }
        let beginsHere = blank < bytes.count && bytes[blank] == UInt8(ascii: "<")
        return beginsHere && (root == nil || mayBegin(bytes[blank...])) ? blank : root ?? blank
    }

    /// Whether a document may begin with this markup: a comment, an instruction, a document type, or a root with any
    /// prefix. Other tags are output of the server's software if a root follows.
    private static func mayBegin(_ text: ArraySlice<UInt8>) -> Bool {
        let rest = text.dropFirst()
        if rest.first == UInt8(ascii: "!") || rest.first == UInt8(ascii: "?") { return true }
        let name = rest.prefix(64).prefix { ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == ASCII.colon }
        let local = name.split(separator: ASCII.colon).last ?? []
        return names.contains { ASCII.equalIgnoringCase(local, $0.utf8) }
    }

    /// The length of byte order marks and white space. Texts that were joined from files may have several marks.
    static func blank(_ bytes: [UInt8]) -> Int {
        var rest = bytes[...]
        while true {
            if rest.starts(with: PlaylistKind.byteOrderMark) {
                rest = rest.dropFirst(PlaylistKind.byteOrderMark.count)
            } else if let first = rest.first, ASCII.isXMLSpace(first) || first == 0 {
                rest = rest.dropFirst()
            } else {
                return rest.startIndex
            }
        }
    }

    /// `<?xml version="1.0" encoding="ISO-8859-1"?>`
    static func declaredEncoding(_ bytes: [UInt8]) -> String? {
        guard let start = place(of: "<?xml ", in: bytes, upTo: longest) else { return nil }
        let declaration = bytes[start...].prefix(200).prefix { $0 != UInt8(ascii: ">") }
        guard let name = place(of: "encoding", in: Array(declaration), upTo: 200) else { return nil }
        let value = declaration.dropFirst(name + 8).drop { !isQuote($0) }.dropFirst().prefix { !isQuote($0) }
        return String(decoding: value, as: UTF8.self)
    }

    private static func isQuote(_ byte: UInt8) -> Bool { byte == ASCII.quote || byte == UInt8(ascii: "'") }

    /// Finds a text, ignoring case.
    private static func place(of text: String, in bytes: [UInt8], upTo end: Int) -> Int? {
        let text = Array(text.utf8), end = min(end, bytes.count - text.count)
        guard let first = text.first, end >= 0 else { return nil }
        return (0...end).first { place in
            bytes[place] == first && ASCII.equalIgnoringCase(bytes[place..<(place + text.count)], text)
        }
    }
}
