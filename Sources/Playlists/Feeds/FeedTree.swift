import CExpat
import CachePolicy
import HTTPModel

/// Reads the XML of a feed with libexpat, and keeps the known elements, one item at a time.
///
/// Never reads external entities, and never expands entities that could grow. Depth, elements and sizes are bounded.
/// It is a class because libexpat's callbacks receive it as a pointer.
final class FeedTree {
    private let text: FeedText
    private let url: OriginURL
    private let parser: XML_Parser
    /// Receives each item when it ends.
    private let onItem: (FeedElement, _ isCut: Bool) -> Void
    private(set) var root: FeedElement?
    /// Why reading ended early. The items before a mistake in the XML count.
    private(set) var failure: FeedError?
    /// Whether elements that may contain addresses were left out.
    private(set) var hasLeftOut = false
    /// The elements that have not ended yet, from the root.
    private var open: [FeedElement] = []
    /// The depth inside an element that is skipped; 0 outside.
    private var passedOver = 0
    private var vocabulary = FeedVocabulary()
    /// The depth of each element that declares vocabularies, and those that apply again after it.
    private var outerVocabularies: [(depth: Int, vocabulary: FeedVocabulary)] = []
    private var elements = 0, elementsOfItem = 0
    /// The offset up to which the parser has reported.
    private var reached = 0

    /// - Returns: nil if memory is exhausted.
    init?(_ text: FeedText, at url: OriginURL, onItem: @escaping (FeedElement, _ isCut: Bool) -> Void) {
        let name = text.isTable ? Self.tableName : "UTF-8"
        guard let parser = XML_ParserCreate(name) else { return nil }
        self.parser = parser
        self.text = text
        self.url = url
        self.onItem = onItem
    }

    deinit { XML_ParserFree(parser) }

    /// The root element, even if the text could not be read to its end.
    var outermost: FeedElement? { root ?? open.first.map(withChildren) }

    /// The element together with a channel that has not ended.
    private func withChildren(_ first: FeedElement) -> FeedElement {
        var first = first
        if open.count > 1, !open[1].name.isItem { first.children.append(open[1]) }
        return first
    }

    // MARK: - The parser

    private static let tableName = "x-reelcache-table"

    /// Reads the whole text, or up to `failure`.
    func read() {
        setHandlers()
        var place = text.start
        reached = place
        repeat {
            place = parse(from: place)
            if place - reached > FeedLimits.tag * 2 { fail(tooLong) }
        } while place < text.bytes.count && failure == nil
    }

    /// The error for markup that the parser would have to hold in memory. A repair leaves out comments and processing
    /// instructions, and so reads the text behind them.
    private var tooLong: FeedError {
        let rest = text.bytes[min(reached, text.bytes.count)...].drop(while: ASCII.isXMLSpace)
        guard rest.starts(with: "<!--".utf8) || rest.starts(with: "<?".utf8) else {
            return .tooLarge("a tag of more than \(FeedLimits.tag) bytes")
        }
        return FeedError(.malformed, "the XML cannot be read: a comment of more than \(FeedLimits.tag) bytes")
    }

    private func setHandlers() {
        XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        XML_SetElementHandler(
            parser, { FeedTree.of($0)?.begin($1, $2) }, { context, _ in FeedTree.of(context)?.end() })
        XML_SetCharacterDataHandler(parser) { FeedTree.of($0)?.take($1, $2) }
        // A default handler, and none for external entities: libexpat then reads no external entities.
        XML_SetDefaultHandler(parser) { FeedTree.of($0)?.takeOther($1, $2) }
        XML_SetEntityDeclHandler(parser) { context, _, isParameter, value, length, _, _, _, _ in
            FeedTree.of(context)?.declare(value, length, isParameter: isParameter != 0)
        }
        XML_SetUnknownEncodingHandler(
            parser, { FeedTree.of($0)?.fill($2) ?? 0 }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Parses one piece: the parser buffers a whole tag before it reports it, and must not buffer a long one.
    /// - Returns: the end of the piece.
    private func parse(from start: Int) -> Int {
        let count = min(FeedLimits.tag, text.bytes.count - start), end = start + count
        let status = text.bytes.withUnsafeBytes { buffer in
            // no trap: a piece is far smaller than 2 GiB
            XML_Parse(parser, buffer.baseAddress.map { $0 + start }, Int32(count), end == text.bytes.count ? 1 : 0)
        }
        if status != XML_STATUS_OK { fail(error) }
        return end
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> FeedTree? {
        context.map { Unmanaged<FeedTree>.fromOpaque($0).takeUnretainedValue() }
    }

    private var error: FeedError {
        let code = XML_GetErrorCode(parser), line = Int(clamping: XML_GetCurrentLineNumber(parser))
        let reason = XML_ErrorString(code).map { String(cString: $0) } ?? "no XML"
        return FeedError(.malformed, "the XML cannot be read: \(reason) in line \(line)")
    }

    private func fail(_ error: FeedError) {
        guard failure == nil else { return }
        failure = error
        XML_StopParser(parser, 0)
    }

    /// The position of the parser's current event: for elements, of the tag.
    private var event: Range<Int> {
        let start = text.start + Int(clamping: XML_GetCurrentByteIndex(parser))
        let count = Int(XML_GetCurrentByteCount(parser))
        return max(0, start)..<max(0, start, min(text.bytes.count, start + count))
    }

    private func pass() { reached = event.upperBound }

    // MARK: - Encoding and entities

    private func fill(_ encoding: UnsafeMutablePointer<XML_Encoding>?) -> Int32 {
        guard let encoding, case .table(let table) = text.encoding else { return 0 }
        withUnsafeMutableBytes(of: &encoding.pointee.map) { buffer in
            let map = buffer.bindMemory(to: Int32.self)
            for place in map.indices {
                map[place] = Int32(
                    bitPattern: place < 128 ? UInt32(truncatingIfNeeded: place) : table.characters[place - 128])
            }
        }
        encoding.pointee.data = nil
        encoding.pointee.convert = nil
        encoding.pointee.release = nil
        return 1
    }

    /// Accepts an entity that stands for a character, such as `nbsp` in old feeds: it cannot grow. All others could.
    private func declare(_ value: UnsafePointer<CChar>?, _ length: Int32, isParameter: Bool) {
        pass()
        guard !isParameter, let value else { return }
        let bytes = UnsafeRawBufferPointer(start: value, count: max(0, Int(length)))
        if bytes.count > 8 || bytes.contains(XMLByte.ampersand) { fail(.entities) }
    }

    /// Takes comments, processing instructions, and references to entities as they are written.
    private func takeOther(_ characters: UnsafePointer<CChar>?, _ count: Int32) {
        pass()
        guard let characters, count > 2, UInt8(bitPattern: characters.pointee) == XMLByte.ampersand, hasText else {
            return
        }
        append(HTMLEntities.decoded(Self.string(characters, count)))
    }

    // MARK: - Elements

    private func begin(_ name: UnsafePointer<CChar>?, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?) {
        pass()
        guard failure == nil, let name else { return }
        if open.count + passedOver >= FeedLimits.depth { return fail(.tooDeep) }
        if let last = open.indices.last { open[last].content = nil }
        let written = TagAttributes(attributes)
        declare(written.namespaces)
        let full = String(cString: name), known = passedOver == 0 ? vocabulary.name(of: full) : nil
        if open.isEmpty, passedOver == 0, let refusal = Self.refusal(of: known, full) { return fail(refusal) }
        guard let known, count(known) else {
            passedOver += 1
            return
        }
        open.append(element(known, written))
    }

    private func declare(_ namespaces: [(String, String)]) {
        guard !namespaces.isEmpty else { return }
        outerVocabularies.append((open.count + passedOver, vocabulary))
        for (prefix, namespace) in namespaces { vocabulary.declare(prefix, as: namespace) }
    }

    private func leaveVocabulary() {
        guard let outer = outerVocabularies.last, outer.depth == open.count + passedOver else { return }
        vocabulary = outer.vocabulary
        outerVocabularies.removeLast()
    }

    private static func refusal(of root: FeedElement.Name?, _ name: String) -> FeedError? {
        if let root, root.isRoot { return nil }
        let local = ASCII.lowercased(name.split(separator: ":").last ?? "")
        return local == "html" ? .page : .notAFeed("its XML begins with \(name.prefix(64))")
    }

    private func element(_ name: FeedElement.Name, _ written: TagAttributes) -> FeedElement {
        let tag = event, base = self.base(written)
        let wanted = name.addresses.compactMap { written.spelling[$0] }
        let ranges = wanted.isEmpty ? [:] : StartTag.values(of: wanted, in: text.bytes, tag)
        var places: [String: Range<Int>] = [:]
        for address in name.addresses { places[address] = written.spelling[address].flatMap { ranges[$0] } }
        return FeedElement(
            name: name, base: base.url, hasOwnBase: base.isOwn, attributes: written.values, places: places,
            content: tag.upperBound..<tag.upperBound)
    }

    private func base(_ written: TagAttributes) -> (url: OriginURL, isOwn: Bool) {
        let outer = open.last.map { ($0.base, $0.hasOwnBase) } ?? (url, false)
        guard let own = written.base.flatMap({ FeedReference($0) })?.url(at: outer.0),
            own.absolute.utf8.count <= FeedLimits.base
        else { return outer }
        return (own, true)
    }

    /// - Returns: whether the element is kept.
    private func count(_ name: FeedElement.Name) -> Bool {
        if open.contains(where: \.name.isItem) {
            // Items within an item count as well, as the outer one keeps all its elements until it ends.
            elementsOfItem += 1
            hasLeftOut = hasLeftOut || elementsOfItem > FeedLimits.elementsOfItem
            return elementsOfItem <= FeedLimits.elementsOfItem
        }
        if name.isItem { elementsOfItem = 0 }
        elements += name.isItem ? 0 : 1
        if elements > FeedLimits.elements { fail(.tooLarge("more than \(FeedLimits.elements) elements")) }
        return failure == nil
    }

    private func end() {
        pass()
        guard failure == nil else { return }
        guard passedOver == 0 else {
            passedOver -= 1
            return leaveVocabulary()
        }
        guard var element = open.popLast() else { return }
        leaveVocabulary()
        let tag = event
        if let start = element.content?.lowerBound, !tag.isEmpty, tag.lowerBound >= start {
            element.content = start..<tag.lowerBound
        } else {
            element.content = nil
        }
        add(element, isCut: text.end.map { tag.lowerBound >= $0 } ?? false)
    }

    private func add(_ element: FeedElement, isCut: Bool) {
        if element.name.isItem {
            onItem(element, isCut)
        } else if let parent = open.indices.last {
            open[parent].children.append(element)
        } else {
            root = element
        }
    }

    // MARK: - Text

    /// Whether the text is read here. Most text in a feed is notes, and is skipped.
    private var hasText: Bool { failure == nil && open.last?.name.hasText == true }

    private func take(_ characters: UnsafePointer<CChar>?, _ count: Int32) {
        pass()
        guard hasText, let characters else { return }
        append(Self.string(characters, count))
    }

    private func append(_ more: String) {
        guard let last = open.indices.last, open[last].text.utf8.count < FeedLimits.text else { return }
        open[last].text += more
    }

    private static func string(_ characters: UnsafePointer<CChar>, _ count: Int32) -> String {
        String(decoding: UnsafeRawBufferPointer(start: characters, count: max(0, Int(count))), as: UTF8.self)
    }
}

extension FeedText {
    fileprivate var isTable: Bool { if case .table = encoding { true } else { false } }
}
