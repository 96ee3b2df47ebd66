import CachePolicy
import HTTPModel

/// Reads the XML of a feed, and keeps the known elements, one item at a time.
///
/// Never expands entities that could grow, nor adds attributes that the document type declares. Depth, elements and
/// sizes are bounded.
final class FeedTree: XMLEventReceiver {
    private let text: FeedText
    private let base: FeedElement.Base
    private let budget: WorkBudget
    private let reader: XMLEventReader
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
    private var elements = 0, elementsOfItem = 0, openItems = 0

    /// - Returns: nil if memory is exhausted.
    init?(
        _ text: FeedText, at base: FeedElement.Base, within budget: WorkBudget,
        onItem: @escaping (FeedElement, _ isCut: Bool) -> Void
    ) {
        let encoding = text.xmlEncoding
        guard let reader = XMLEventReader(text.bytes, from: text.start, encoding, piece: FeedLimits.tag) else {
            return nil
        }
        self.reader = reader
        self.text = text
        (self.base, self.budget) = (base, budget)
        self.onItem = onItem
    }

    /// The root element, even if the text could not be read to its end.
    var outermost: FeedElement? { root ?? open.first.map(withChildren) }

    /// The element together with a channel that has not ended.
    private func withChildren(_ first: FeedElement) -> FeedElement {
        var first = first
        if open.count > 1, !open[1].name.isItem { first.children.append(open[1]) }
        return first
    }

    // MARK: - The parser

    /// Reads the whole text, or up to `failure`.
    func read() {
        // What the parser of XML does itself: it copies each byte some times.
        guard hasTaken(text.bytes.count) else { return }
        switch reader.read(to: self) {
        case .complete, .stopped: return
        case .tooLong: failure = failure ?? tooLong
        case .malformed(let reason, let line, _):
            failure = failure ?? FeedError(.malformed, "the XML cannot be read: \(reason) in line \(line)")
        }
    }

    /// The error for markup that the parser would have to hold in memory. A repair leaves out comments and processing
    /// instructions, and so reads the text behind them.
    private var tooLong: FeedError {
        let rest = text.bytes[min(reader.reached, text.bytes.count)...].drop(while: ASCII.isXMLSpace)
        guard rest.starts(with: "<!--".utf8) || rest.starts(with: "<?".utf8) else {
            return .tooLarge("a tag of more than \(FeedLimits.tag) bytes")
        }
        return FeedError(.malformed, "the XML cannot be read: a comment of more than \(FeedLimits.tag) bytes")
    }

    private func hasTaken(_ steps: Int) -> Bool {
        do throws(PlaylistError) { try budget.take(steps) } catch { fail(FeedError(error)) }
        return failure == nil
    }

    private func fail(_ error: FeedError) {
        guard failure == nil else { return }
        failure = error
        reader.stop()
    }

    // MARK: - Entities

    /// Accepts an entity that stands for a character, such as `nbsp` in old feeds: it cannot grow. All others could.
    func declareEntity(_ value: UnsafeRawBufferPointer?, isParameter: Bool) {
        guard !isParameter, let value else { return }
        if value.count > 8 || value.contains(XMLByte.ampersand) { fail(.entities) }
    }

    func declareAttribute() { fail(.attributes) }

    func takeOther(_ other: UnsafeRawBufferPointer) {
        guard other.count > 2, other.first == XMLByte.ampersand, hasText else { return }
        append(HTMLEntities.decoded(String(decoding: other, as: UTF8.self)))
    }

    // MARK: - Elements

    func begin(_ name: UnsafePointer<CChar>, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?) {
        let tag = reader.event
        guard failure == nil, hasTaken(tag.count) else { return }
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
        if let element = element(known, written, tag) { open.append(element) }
        if known.isItem { openItems += 1 }
    }

    private func declare(_ namespaces: [(String, String)]) {
        // The vocabulary is copied, and each namespace is compared with those that are known.
        guard !namespaces.isEmpty,
            hasTaken(namespaces.reduce(vocabulary.count &* 8) { $0 &+ $1.1.utf8.count &* 20 })
        else { return }
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

    /// Nil once the budget is spent.
    private func element(_ name: FeedElement.Name, _ written: TagAttributes, _ tag: Range<Int>) -> FeedElement? {
        let outer = open.last?.base ?? base, base: FeedElement.Base
        do throws(PlaylistError) { base = try written.base.flatMap(outer.entering) ?? outer } catch {
            fail(FeedError(error))
            return nil
        }
        let wanted = name.addresses.compactMap { written.spelling[$0] }
        let ranges = wanted.isEmpty ? [:] : StartTag.values(of: wanted, in: text.bytes, tag)
        var places: [String: Range<Int>] = [:]
        for address in name.addresses { places[address] = written.spelling[address].flatMap { ranges[$0] } }
        return FeedElement(
            name: name, base: base, attributes: written.values, places: places,
            content: tag.upperBound..<tag.upperBound)
    }

    /// - Returns: whether the element is kept.
    private func count(_ name: FeedElement.Name) -> Bool {
        if openItems > 0 {
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

    func end() {
        guard failure == nil else { return }
        guard passedOver == 0 else {
            passedOver -= 1
            return leaveVocabulary()
        }
        guard var element = open.popLast() else { return }
        if element.name.isItem { openItems -= 1 } // no trap: counted when it began
        leaveVocabulary()
        let tag = reader.event
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

    func take(_ piece: UnsafeRawBufferPointer) {
        guard hasText else { return }
        append(String(decoding: piece, as: UTF8.self))
    }

    private func append(_ more: String) {
        guard let last = open.indices.last, open[last].text.utf8.count < FeedLimits.text else { return }
        open[last].text += more
    }
}

extension FeedText {
    fileprivate var xmlEncoding: XMLEventReader.Encoding {
        if case .table(let table) = encoding { .table(table.characters) } else { .utf8 }
    }
}
