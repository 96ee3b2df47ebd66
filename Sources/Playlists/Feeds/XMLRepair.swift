import HTTPModel

/// Turns a text that is almost XML into well-formed XML, and records which byte of the text each byte stands for.
///
/// It reads the text as browsers do: it pairs tags by name, closes or drops tags without a partner, and treats invalid
/// markup as text. It leaves out comments, processing instructions and the document type. All that it adds is ASCII,
/// and so valid in every encoding that contains ASCII.
struct XMLRepair {
    let source: [UInt8]
    let isUTF8: Bool
    private(set) var text = MappedText()
    /// Where the added end tags begin; nil if none were missing.
    private(set) var end: Int?
    /// The names of elements that have not ended yet, from the root.
    private var open: [Range<Int>] = []
    private var place: Int
    private var hasRoot = false
    private let budget: WorkBudget

    private static let tooMany = FeedError.tooLarge("its XML has too many mistakes")

    /// - Parameter start: where the XML begins.
    init(_ bytes: [UInt8], from start: Int, _ encoding: TextEncoding, _ budget: WorkBudget) throws(FeedError) {
        source = bytes
        self.budget = budget
        place = start
        if case .table = encoding { isUTF8 = false } else { isUTF8 = true }
        // Everything after the end of the root is ignored.
        while place < source.count, !(hasRoot && open.isEmpty) { try takePiece() }
        if !open.isEmpty { end = text.bytes.count }
        while let name = open.popLast() { writeEnd(name, for: source.count..<source.count) }
    }

    private mutating func takePiece() throws(FeedError) {
        let former = place
        if source[place] == XMLByte.less { try takeMarkup() } else { try takeText() }
        try budget.take(ofFeed: place &- former)
        guard text.pieces <= FeedLimits.repairs else { throw Self.tooMany }
    }

    // MARK: - Text

    private mutating func takeText() throws(FeedError) {
        let end = source[place...].firstIndex(of: XMLByte.less) ?? source.count
        if !open.isEmpty { try write(place..<end, as: .text) }
        place = end
    }

    /// The context of a text, which decides which characters would be markup.
    private enum Context: Equatable {
        case text, characterData
        /// An attribute's value, which must not contain the quote.
        case value(quote: UInt8?)
    }

    private mutating func write(_ range: Range<Int>, as context: Context) throws(FeedError) {
        var copied = range.lowerBound, place = copied
        while place < range.upperBound {
            if let (count, written) = replacement(at: place, in: range, context) {
                guard text.pieces <= FeedLimits.repairs else { throw Self.tooMany }
                text.copy(copied..<place, of: source)
                text.write(written.utf8, for: place..<(place + count))
                place += count
                copied = place
            } else {
                place += 1
            }
        }
        text.copy(copied..<range.upperBound, of: source)
    }

    /// How many bytes to replace here, and their replacement; nil if they are valid.
    private func replacement(at place: Int, in range: Range<Int>, _ context: Context) -> (Int, String)? {
        if let count = XMLCharacter.length(source, at: place, isUTF8: isUTF8) { return (count, " ") }
        guard context != .characterData else { return nil }
        switch source[place] {
        case XMLByte.ampersand: return XMLCharacter.reference(source[place..<range.upperBound])
        case XMLByte.less: return (1, "&lt;")
        case UInt8(ascii: "]") where source[place..<range.upperBound].starts(with: "]]>".utf8): return (3, "]]&gt;")
        // A comment or a tag was left out between the brackets.
        case UInt8(ascii: "]") where isAfterBracket(place, in: range, context): return (1, "&#93;")
        case XMLByte.greater where isAfterBracket(place, in: range, context): return (1, "&gt;")
        case ASCII.quote where context == .value(quote: ASCII.quote): return (1, "&quot;")
        default: return nil
        }
    }

    /// Whether a text begins here and a closing bracket precedes it in the repaired text.
    private func isAfterBracket(_ place: Int, in range: Range<Int>, _ context: Context) -> Bool {
        context == .text && place == range.lowerBound && text.bytes.last == UInt8(ascii: "]")
    }

    // MARK: - Markup

    private mutating func takeMarkup() throws(FeedError) {
        let rest = source[place...]
        if rest.starts(with: "<!--".utf8) {
            place = find("-->", after: 4) ?? source.count
        } else if rest.starts(with: "<![CDATA[".utf8) {
            try takeCharacterData()
        } else if rest.starts(with: "<!".utf8) {
            place = documentTypeEnd
        } else if rest.starts(with: "<?".utf8) {
            // As in browsers: the question mark before the end is often missing.
            place = find(">", after: 2) ?? source.count
        } else if let tag = Tag(source, at: place) {
            try take(tag)
        } else {
            takeStray()
        }
    }

    /// Writes a `<` that does not begin a tag as text, and drops a tag within which the text ends.
    private mutating func takeStray() {
        if Tag.begins(source, at: place) {
            place = source.count
        } else {
            if !open.isEmpty { text.write("&lt;".utf8, for: place..<(place + 1)) }
            place += 1
        }
    }

    private mutating func takeCharacterData() throws(FeedError) {
        let end = find("]]>", after: 9)
        if !open.isEmpty {
            text.copy(place..<(place + 9), of: source)
            try write((place + 9)..<(end.map { $0 - 3 } ?? source.count), as: .characterData)
            if let end { text.copy((end - 3)..<end, of: source) }
            if end == nil { text.write("]]>".utf8, for: source.count..<source.count) }
        }
        place = end ?? source.count
    }

    /// The end of a document type, including its part in brackets.
    private var documentTypeEnd: Int {
        var isInBrackets = false
        for next in place..<source.count {
            switch source[next] {
            case UInt8(ascii: "["): isInBrackets = true
            case UInt8(ascii: "]"): isInBrackets = false
            case XMLByte.greater where !isInBrackets: return next + 1
            default: break
            }
        }
        return source.count
    }

    /// The end of the next occurrence.
    private func find(_ mark: String, after count: Int) -> Int? {
        let mark = Array(mark.utf8)
        guard let first = mark.first, place + count <= source.count else { return nil }
        var rest = source[(place + count)...]
        while let found = rest.firstIndex(of: first) {
            if source[found...].starts(with: mark) { return found + mark.count }
            rest = source[(found + 1)...]
        }
        return nil
    }

    // MARK: - Tags

    private mutating func take(_ tag: Tag) throws(FeedError) {
        place = tag.range.upperBound
        switch tag.kind {
        case .end: try takeEnd(tag)
        case .start, .both:
            // Each attribute is compared with those before it.
            try budget.take(ofFeed: tag.attributes.count &* tag.attributes.count)
            try closeOthers(before: tag)
            guard open.count < FeedLimits.depth else { throw .tooDeep }
            try write(tag)
            hasRoot = true
            if tag.kind == .start { open.append(tag.name) }
            if tag.kind == .start, isOne(tag.name, of: Self.withoutEnd) { try takeEnd(tag) }
        }
    }

    private mutating func write(_ tag: Tag) throws(FeedError) {
        if tag.isPlain { return text.copy(tag.range, of: source) }
        text.copy(tag.range.lowerBound..<tag.name.upperBound, of: source)
        for attribute in tag.attributes {
            text.write(" ".utf8, for: attribute.name.lowerBound..<attribute.name.lowerBound)
            text.copy(attribute.name, of: source)
            let quote = attribute.quote ?? ASCII.quote, value = attribute.value
            text.write([UInt8(ascii: "="), quote], for: value.lowerBound..<value.lowerBound)
            try write(value, as: .value(quote: attribute.quote == nil ? quote : nil))
            text.write([quote], for: value.upperBound..<value.upperBound)
        }
        text.write((tag.kind == .both ? "/>" : ">").utf8, for: tag.range.upperBound..<tag.range.upperBound)
    }

    /// Closes an open item before the next item, and an open paragraph before the next paragraph.
    private mutating func closeOthers(before tag: Tag) throws(FeedError) {
        let here = tag.range.lowerBound..<tag.range.lowerBound
        if isOne(tag.name, of: Self.items), let outer = try partner(of: tag.name) { close(to: outer, for: here) }
        if let last = open.last, isSame(last, tag.name), isOne(last, of: Self.paragraphs) {
            close(to: open.count - 1, for: here)
        }
    }

    private static let items = ["item", "entry", "track"]
    private static let paragraphs = ["p", "li", "dt", "dd", "tr", "td"]
    /// Elements of HTML without an end tag.
    private static let withoutEnd = ["br", "img", "hr", "wbr", "input"]

    private mutating func takeEnd(_ tag: Tag) throws(FeedError) {
        guard let partner = try partner(of: tag.name) else { return }
        close(to: partner + 1, for: tag.range.lowerBound..<tag.range.lowerBound)
        let end = tag.kind == .end ? tag.range : tag.range.upperBound..<tag.range.upperBound
        if let name = open.popLast() { writeEnd(name, for: end) }
    }

    /// The innermost open element with this name.
    private func partner(of name: Range<Int>) throws(FeedError) -> Int? {
        let partner = open.lastIndex { isSame($0, name) }
        if partner == nil { try budget.take(ofFeed: open.count) }
        return partner
    }

    private mutating func close(to count: Int, for range: Range<Int>) {
        while open.count > count, let name = open.popLast() { writeEnd(name, for: range) }
    }

    private mutating func writeEnd(_ name: Range<Int>, for range: Range<Int>) {
        let tag: [UInt8] = [XMLByte.less, XMLByte.slash] + source[name] + [XMLByte.greater]
        // A copy extends the piece before it, so that an end tag without a mistake is not a change.
        if source[range].elementsEqual(tag) { text.copy(range, of: source) } else { text.write(tag, for: range) }
    }

    private func isSame(_ a: Range<Int>, _ b: Range<Int>) -> Bool {
        a.count == b.count && ASCII.equalIgnoringCase(source[a], source[b])
    }

    private func isOne(_ name: Range<Int>, of names: [String]) -> Bool {
        names.contains { ASCII.equalIgnoringCase(source[name], $0.utf8) }
    }
}
