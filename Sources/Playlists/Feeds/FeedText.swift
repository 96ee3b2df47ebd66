import CachePolicy
import HTTPModel

/// The XML of a feed as the parser can read it, and where its bytes stand in the text that arrived.
struct FeedText {
    let bytes: [UInt8]
    /// Where XML begins: behind a byte order mark, white space, or what a server wrote before it.
    let start: Int
    let encoding: TextEncoding
    /// Where end tags were written for elements that did not end; nil where all did.
    private(set) var end: Int?
    private(set) var isRepaired = false
    private var maps: [MappedText] = []
    /// The bytes are those that arrived, or a map leads there.
    private let hasPlaces: Bool

    /// - Parameter charset: of the response's media type.
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

    /// The same text made well-formed.
    func repaired() throws(FeedError) -> FeedText { FeedText(try XMLRepair(bytes, from: start, encoding), of: self) }

    /// Where bytes stand in the text that arrived; nil where that was in another form.
    func source(of range: Range<Int>) -> Range<Int>? {
        hasPlaces ? maps.reversed().reduce(range) { range, map in map.source(of: range) } : nil
    }

    private static func replacingStrays(_ bytes: [UInt8]) -> MappedText {
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
