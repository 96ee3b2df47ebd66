import HTTPModel

/// Parses an MPD's XML, and keeps the elements that matter.
///
/// A document type is rejected, since entities are defined there. Depth and number of elements are bounded.
final class MPDTree: XMLEventReceiver {
    private let bytes: [UInt8]
    private let reader: XMLEventReader
    private let budget: WorkBudget
    private var root: MPDElement?
    /// The elements that have begun but not ended, from the root.
    private var open: [MPDElement] = []
    /// The current depth inside a skipped element.
    private var passedOver = 0
    private var text = ""
    private var elements = 0, rows = 0
    /// The prefix of the root's name, with its colon: elements with another prefix belong to another vocabulary.
    private var prefix = ""
    private var failure: PlaylistError?

    /// - Throws: if the text is not well-formed XML in an encoding that contains ASCII, is not an MPD, or exceeds a
    ///   limit.
    static func read(_ bytes: [UInt8], within budget: WorkBudget) throws(PlaylistError) -> MPDElement {
        try PlaylistError.check(size: bytes.count)
        // Every character with which XML can begin has a zero byte in UTF-16; a byte order mark has no other
        // meaning.
        guard !bytes.prefix(4).contains(where: { $0 == 0 || $0 >= 0xFE }) else {
            throw PlaylistError(.encoding, "the MPD is in UTF-16: only UTF-8 is supported")
        }
        guard let reader = XMLEventReader(bytes, .declared, piece: PlaylistLimits.line) else {
            throw .tooLarge("not enough memory for the MPD")
        }
        // What the parser of XML does itself: it copies each byte some times.
        try budget.take(bytes.count)
        let tree = MPDTree(bytes, reader, budget)
        try tree.parse()
        guard let root = tree.root else { throw PlaylistError(.notAPlaylist, "the text is not an MPD") }
        return root
    }

    private init(_ bytes: [UInt8], _ reader: XMLEventReader, _ budget: WorkBudget) {
        (self.bytes, self.reader, self.budget) = (bytes, reader, budget)
    }

    // MARK: - The parser

    private func parse() throws(PlaylistError) {
        let outcome = reader.read(to: self)
        if let failure { throw failure }
        switch outcome {
        case .complete, .stopped: return
        case .tooLong: throw .tooLarge("a tag of the MPD is too long")
        case .malformed(let reason, let line, let isEncoding):
            throw PlaylistError(isEncoding ? .encoding : .malformed, "the MPD cannot be read: \(reason)", line: line)
        }
    }

    private func fail(_ error: PlaylistError) {
        failure = failure ?? error
        reader.stop()
    }

    func beginDocumentType() {
        fail(PlaylistError(.documentType, "the MPD has a document type, which is not allowed"))
    }

    // MARK: - Elements

    func begin(_ name: UnsafePointer<CChar>, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?) {
        guard failure == nil else { return }
        let tag = reader.event
        do throws(PlaylistError) { try budget.take(tag.count) } catch { return fail(error) }
        guard passedOver == 0, let known = known(String(cString: name)) else {
            passedOver += 1
            if open.count + passedOver > PlaylistLimits.depth { fail(.tooLarge("elements are nested too deeply")) }
            return
        }
        let element = MPDElement(known, Self.pairs(attributes), tag: tag, in: bytes)
        guard element.addresses.values.allSatisfy({ $0.range.count <= PlaylistLimits.line }) else {
            return fail(.tooLarge("an address in the MPD is too long"))
        }
        open.append(element)
        text = ""
        count(known)
    }

    private func known(_ name: String) -> MPDElement.Name? {
        if open.isEmpty {
            guard root == nil, name.hasSuffix("MPD") else { return nil }
            prefix = String(name.dropLast(3))
            return prefix.isEmpty || prefix.hasSuffix(":") ? .mpd : nil
        }
        guard name.hasPrefix(prefix), let place = open.last?.name,
            let known = MPDElement.Name(rawValue: String(name.dropFirst(prefix.count)))
        else { return nil }
        return known.places.contains(place) ? known : nil
    }

    private func count(_ name: MPDElement.Name) {
        if name == .timelineEntry || name == .segmentURL { rows += 1 } else { elements += 1 }
        if rows > PlaylistLimits.listedSegments {
            fail(.tooLarge("more than \(PlaylistLimits.listedSegments) segments are listed"))
        }
        if elements > PlaylistLimits.elements { fail(.tooLarge("more than \(PlaylistLimits.elements) elements")) }
        if open.count > PlaylistLimits.depth { fail(.tooLarge("elements are nested too deeply")) }
    }

    private static func pairs(_ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?) -> [MPDElement.Attribute] {
        var pairs: [MPDElement.Attribute] = []
        var place = attributes
        while let next = place, let name = next.pointee, let value = next.successor().pointee {
            if let pair = MPDElement.Attribute(String(cString: name), String(cString: value)) { pairs.append(pair) }
            place = next.successor().successor()
        }
        return pairs
    }

    func end() {
        guard failure == nil else { return }
        guard passedOver == 0 else {
            passedOver -= 1
            return
        }
        guard var element = open.popLast() else { return }
        let tag = reader.event
        element.whole = element.tag.lowerBound..<max(element.tag.upperBound, tag.upperBound)
        // An empty-element tag ends at the end of its tag, and is empty.
        if !tag.isEmpty, tag.lowerBound >= element.tag.upperBound {
            element.content = MPDElement.Text(value: text, range: element.tag.upperBound..<tag.lowerBound)
        }
        text = ""
        add(element)
    }

    private func add(_ element: MPDElement) {
        guard let parent = open.indices.last else {
            root = element
            return
        }
        switch element.name {
        case .timelineEntry: addTimelineEntry(element, to: parent)
        case .segmentURL:
            let range = element["mediaRange"].flatMap(MediaNumbers.byteRange)
            open[parent].segmentURLs.append(
                SegmentURLEntry(media: element.addresses["media"], mediaRange: range, index: element.addresses["index"])
            )
        default: open[parent].children.append(element)
        }
    }

    private func addTimelineEntry(_ element: MPDElement, to parent: Int) {
        guard let duration = element.ticks("d"), duration > 0 else {
            return fail(.malformed("a segment of a timeline has no duration"))
        }
        let repeats = element["r"].map { $0.hasPrefix("-") ? -1 : ASCII.saturatingDecimal($0.utf8) ?? 0 } ?? 0
        open[parent].timeline.append(
            TimelineEntry(time: element.ticks("t"), duration: duration, repeats: repeats, number: element.number("n")))
    }

    // MARK: - Text

    func take(_ piece: UnsafeRawBufferPointer) {
        guard failure == nil, passedOver == 0, open.last?.name.hasText == true else { return }
        guard text.utf8.count + piece.count <= PlaylistLimits.line else {
            return fail(.tooLarge("an address in the MPD is too long"))
        }
        text += String(decoding: piece, as: UTF8.self)
    }
}

extension MPDElement {
    /// A time or duration, in units of the timescale; nil if it is missing or beyond the limits.
    func ticks(_ name: String) -> Int64? { self[name].flatMap { ASCII.decimal($0.utf8, upTo: PlaylistLimits.ticks) } }

    /// The number of a segment.
    func number(_ name: String) -> Int64? {
        self[name].flatMap { ASCII.decimal($0.utf8, upTo: PlaylistLimits.timescale) }
    }
}

/// Finds values of attributes in a tag that the parser has found to be well-formed (XML 1.0 §3.1).
enum StartTag {
    /// - Parameter names: as written, with prefixes.
    /// - Returns: the offsets of the values, without quotes.
    static func values(of names: [String], in bytes: [UInt8], _ tag: Range<Int>) -> [String: Range<Int>] {
        var found: [String: Range<Int>] = [:]
        var rest = bytes[tag].drop { !ASCII.isXMLSpace($0) }
        while let equals = rest.firstIndex(of: UInt8(ascii: "=")) {
            let name = rest[..<equals].drop(while: ASCII.isXMLSpace).prefix { !ASCII.isXMLSpace($0) }
            let value = rest[(equals + 1)...].drop(while: ASCII.isXMLSpace)
            guard let quote = value.first, let end = value.dropFirst().firstIndex(of: quote) else { break }
            let text = String(decoding: name, as: UTF8.self)
            if names.contains(text) { found[text] = (value.startIndex + 1)..<end }
            rest = rest[(end + 1)...]
        }
        return found
    }
}
