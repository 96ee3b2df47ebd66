import CachePolicy
import HTTPModel

/// The XML of a feed in a form that the parser reads, and the positions of its bytes in the received text.
struct FeedText {
    let bytes: [UInt8]
    /// Where the XML begins: after a byte order mark, white space, or output that the server wrote before it.
    let start: Int
    let encoding: TextEncoding
    /// Where end tags were added for elements without one; nil if none were.
    private(set) var end: Int?
    private(set) var isRepaired = false
    private var maps: [MappedText] = []
    /// Whether positions in the received text are known: the bytes are unchanged, or there is a map.
    let hasPlaces: Bool

    /// - Parameter charset: the `charset` of the response's media type.
    init(_ received: [UInt8], charset: String?) {
        let encoding = TextEncoding(of: received, declared: charset ?? XMLProlog.declaredEncoding(received))
        self.encoding = encoding
        if case .utf16 = encoding { hasPlaces = false } else { hasPlaces = true }
        var text = encoding.transcoded(received)
        if encoding == .damagedUTF8 {
            let map = Self.replacingStrays(text)
            maps = [map]
            text = map.bytes
            isRepaired = true
        }
        bytes = text
        start = XMLProlog.start(of: text)
    }

    private init(_ repair: XMLRepair, of text: FeedText) {
        bytes = repair.text.bytes
        start = 0
        encoding = text.encoding
        end = repair.end
        isRepaired = true
        hasPlaces = text.hasPlaces
        maps = text.maps + [repair.text]
    }

    /// The same text with repairs, after which it is well-formed.
    func repaired(within budget: WorkBudget) throws(FeedError) -> FeedText {
        FeedText(try XMLRepair(bytes, from: start, encoding, budget), of: self)
    }

    /// The position of bytes in the received text; nil if that was transcoded.
    func source(of range: Range<Int>) -> Range<Int>? {
        hasPlaces ? maps.reversed().reduce(range) { range, map in map.source(of: range) } : nil
    }

    /// The text in UTF-8, with bytes that do not belong to a character read as windows-1252.
    static func replacingStrays(_ bytes: [UInt8]) -> MappedText {
        var map = MappedText()
        var place = 0, copied = 0
        while place < bytes.count {
            let length = UTF8Count.length(at: place, in: bytes)
            if length == 0 {
                map.copy(copied..<place, of: bytes)
                let code = CharacterTable.western.characters[Int(bytes[place] &- 0x80)]
                map.write(String(Unicode.Scalar(code) ?? "\u{FFFD}").utf8, for: place..<(place + 1))
                copied = place + 1
            }
            place += max(1, length)
        }
        map.copy(copied..<bytes.count, of: bytes)
        return map
    }
}
