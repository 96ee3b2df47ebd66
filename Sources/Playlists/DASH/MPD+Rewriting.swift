import CachePolicy
import HTTPModel

extension MPD {
    /// What to change so that a client finds all that the MPD names through the proxy.
    ///
    /// A reference that leads there by itself stays as it is; of another one the proxy's absolute form is written.
    /// Templates keep what stands between dollar signs. What is not fetched over HTTP (`data:`, `urn:`, unknown
    /// schemes) stays. Where several `BaseURL` are alternatives, what is right for each of them stays, and otherwise
    /// the first one's form is written.
    /// - Parameters:
    ///   - form: how the client reaches an origin's URLs.
    ///   - client: the URL under which the client has asked for this MPD, without dot segments.
    /// - Throws: where the text would grow beyond `PlaylistLimits.expansion`.
    package func edits(for form: ProxyForm, at client: OriginURL) throws(PlaylistError) -> [AddressEdit] {
        let document = AddressScope(origin: base, client: client)
        var rewriting = MPDRewriting(document: document, form: form)
        _ = rewriting.visit(root, [document])
        guard rewriting.added <= PlaylistLimits.expansion else {
            throw .tooLarge("the MPD with its addresses rewritten")
        }
        return rewriting.edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }
}

/// Goes through an MPD from the outside to the inside. What stands on one level about segments is resolved against
/// the bases of the representations below it, which are known last; so a level's own addresses come after its
/// children's.
private struct MPDRewriting {
    let document: AddressScope
    let form: ProxyForm
    private(set) var edits: [AddressEdit] = []
    /// Bytes of all replacements so far. Beyond the limit none is kept, as the whole is of no use.
    private(set) var added = 0
    private var rewriters: [AddressScope: AddressRewriter] = [:]

    init(document: AddressScope, form: ProxyForm) {
        self.document = document
        self.form = form
    }

    /// - Parameter outer: the bases of the level above, as alternatives.
    /// - Returns: the bases of the representations below, or the level's own where there are none.
    mutating func visit(_ element: MPDElement, _ outer: [AddressScope]) -> [AddressScope] {
        rewrite(element.addresses["xlink:href"], [document])
        let scopes = enter(element.children(.baseURL), outer)
        var leaves: [AddressScope] = []
        for child in element.children where child.isLevel { leaves = Self.union(leaves, visit(child, scopes)) }
        if leaves.isEmpty { leaves = scopes }
        for child in element.children { visitAddresses(child, leaves, scopes) }
        return leaves
    }

    // MARK: - Bases

    /// What the bases of the level above become by a level's own.
    private mutating func enter(_ elements: [MPDElement], _ outer: [AddressScope]) -> [AddressScope] {
        guard !elements.isEmpty else { return outer }
        return elements.reduce(into: []) { scopes, element in scopes = Self.union(scopes, enter(element, outer)) }
    }

    private mutating func enter(_ element: MPDElement, _ outer: [AddressScope]) -> [AddressScope] {
        let reference = element.content?.reference ?? ""
        // An element without content has no place for another reference, and needs none: it is the base that it was.
        let written = element.content.flatMap { rewrite($0, outer) } ?? reference
        return outer.compactMap { scope in
            guard let origin = scope.origin.resolving(reference), let client = scope.client.resolving(written) else {
                return nil
            }
            return AddressScope(origin: origin, client: client)
        }
    }

    /// Each once, and not more than anybody has.
    private static func union(_ a: [AddressScope], _ b: [AddressScope]) -> [AddressScope] {
        b.reduce(into: a) { all, scope in
            if all.count < PlaylistLimits.baseURLs, !all.contains(scope) { all.append(scope) }
        }
    }

    // MARK: - Addresses

    private mutating func visitAddresses(_ element: MPDElement, _ leaves: [AddressScope], _ level: [AddressScope]) {
        switch element.name {
        case .segmentTemplate, .segmentList, .segmentBase: visitSegments(element, leaves)
        case .location, .patchLocation, .contentSteering: rewrite(element.content, [document])
        case .utcTiming: rewriteTimes(element, level)
        case .eventStream: rewrite(element.addresses["xlink:href"], [document])
        default: break
        }
    }

    private mutating func visitSegments(_ element: MPDElement, _ scopes: [AddressScope]) {
        rewrite(element.addresses["xlink:href"], [document])
        let isTemplate = element.name == .segmentTemplate
        for name in element.name.addresses {
            rewrite(element.addresses[name], isTemplate ? scopes.map(\.escapingTemplates) : scopes)
        }
        for child in element.children {
            for name in child.name.addresses { rewrite(child.addresses[name], scopes) }
        }
        for entry in element.segmentURLs {
            rewrite(entry.media, scopes)
            rewrite(entry.index, scopes)
        }
    }

    /// A list of addresses in one attribute.
    private mutating func rewriteTimes(_ element: MPDElement, _ scopes: [AddressScope]) {
        guard let value = element.addresses["value"], !element.timeReferences.isEmpty else { return }
        let references = element.timeReferences, written = references.map { replacement(for: $0, scopes) ?? $0 }
        if written != references { replace(value.range, with: written.joined(separator: " ")) }
    }

    /// - Returns: what is written; nil where the reference stays.
    @discardableResult
    private mutating func rewrite(_ text: MPDElement.Text?, _ scopes: [AddressScope]) -> String? {
        guard let text, let replacement = replacement(for: text.reference, scopes) else { return nil }
        replace(text.range, with: replacement)
        return replacement
    }

    /// Nil where the reference is right for all of the bases.
    private mutating func replacement(for reference: String, _ scopes: [AddressScope]) -> String? {
        let isRight = scopes.allSatisfy {
            rewriters[$0, default: AddressRewriter($0, form: form)].replacement(for: reference) == nil
        }
        guard !isRight, let first = scopes.first else { return nil }
        return rewriters[first]?.absolute(reference)
    }

    private mutating func replace(_ range: Range<Int>, with text: String) {
        let escaped = Self.escaped(text)
        added += escaped.utf8.count
        if added <= PlaylistLimits.expansion { edits.append(AddressEdit(range: range, replacement: escaped)) }
    }

    /// XML 1.0 §2.4: right in text and in attributes with either quote.
    private static func escaped(_ text: String) -> String {
        guard text.hasByte(of: Array(entities.keys)) else { return text }
        let escaped = text.utf8.flatMap { entities[$0] ?? [$0] }
        return String(decoding: escaped, as: UTF8.self)
    }

    private static let entities: [UInt8: [UInt8]] = [
        UInt8(ascii: "&"): Array("&amp;".utf8), UInt8(ascii: "<"): Array("&lt;".utf8),
        UInt8(ascii: ">"): Array("&gt;".utf8),
        UInt8(ascii: "\""): Array("&quot;".utf8), UInt8(ascii: "'"): Array("&apos;".utf8),
    ]
}

extension MPDElement {
    /// It has bases of its own.
    fileprivate var isLevel: Bool { name == .period || name == .adaptationSet || name == .representation }
}

extension AddressScope {
    /// A dollar sign of a base would be an identifier's in a template: it is written twice (ISO/IEC 23009-1
    /// §5.3.9.4.4).
    fileprivate var escapingTemplates: AddressScope {
        AddressScope(origin: origin.escapingTemplates, client: client.escapingTemplates)
    }
}

extension OriginURL {
    fileprivate var escapingTemplates: OriginURL {
        guard pathAndQuery.utf8.contains(UInt8(ascii: "$")) else { return self }
        return at(pathAndQuery.replacing("$", with: "$$")) ?? self
    }
}
