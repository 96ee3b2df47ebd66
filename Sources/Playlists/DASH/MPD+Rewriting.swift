import CachePolicy
import HTTPModel

extension MPD {
    /// The edits by which a client finds everything that the MPD refers to through the proxy.
    ///
    /// A reference that already leads there stays as it is; any other one is replaced by the proxy's absolute form.
    /// Templates keep the text between dollar signs. References that are not fetched over HTTP (`data:`, `urn:`,
    /// unknown schemes) stay. If several `BaseURL` are alternatives, a reference that is right for each of them
    /// stays; otherwise the form for the first one is written.
    /// - Parameters:
    ///   - form: how the client reaches an origin's URLs.
    ///   - client: the URL by which the client requested this MPD, without dot segments.
    /// - Throws: if the text would grow beyond `PlaylistLimits.expansion`.
    package func edits(for form: ProxyForm, at client: OriginURL) throws(PlaylistError) -> [AddressEdit] {
        let document = AddressScope(origin: base, client: client)
        var rewriting = MPDRewriting(document: document, form: form)
        _ = rewriting.visit(root, [document])
        guard rewriting.added <= PlaylistLimits.expansion else {
            throw .tooLarge("the MPD is too large with its addresses rewritten")
        }
        return rewriting.edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }
}

/// Walks an MPD from the outside in. The segment addresses of a level are resolved against the bases of the
/// representations below it, which are known last; so a level's own addresses are rewritten after its children's.
private struct MPDRewriting {
    let document: AddressScope
    let form: ProxyForm
    private(set) var edits: [AddressEdit] = []
    /// Bytes of all replacements so far. Beyond the limit no more are kept, as the whole is useless then.
    private(set) var added = 0
    private var rewriters: [AddressScope: AddressRewriter] = [:]

    init(document: AddressScope, form: ProxyForm) {
        self.document = document
        self.form = form
    }

    /// - Parameter outer: the bases of the level above, as alternatives.
    /// - Returns: the bases of the representations below, or the level's own if there are none.
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

    /// Applies a level's own bases to those of the level above.
    private mutating func enter(_ elements: [MPDElement], _ outer: [AddressScope]) -> [AddressScope] {
        guard !elements.isEmpty else { return outer }
        return elements.reduce(into: []) { scopes, element in scopes = Self.union(scopes, enter(element, outer)) }
    }

    private mutating func enter(_ element: MPDElement, _ outer: [AddressScope]) -> [AddressScope] {
        let reference = element.content?.reference ?? ""
        // An empty element has no room for another reference, and needs none: its base is that of the level above.
        let written = element.content.flatMap { rewrite($0, outer) } ?? reference
        return outer.compactMap { scope in
            guard let origin = scope.origin.resolving(reference), let client = scope.client.resolving(written) else {
                return nil
            }
            return AddressScope(origin: origin, client: client)
        }
    }

    /// Without duplicates, and no more than any real MPD has.
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

    /// Rewrites a list of addresses in one attribute.
    private mutating func rewriteTimes(_ element: MPDElement, _ scopes: [AddressScope]) {
        guard let value = element.addresses["value"], !element.timeReferences.isEmpty else { return }
        let references = element.timeReferences, written = references.map { replacement(for: $0, scopes) ?? $0 }
        if written != references { replace(value.range, with: written.joined(separator: " ")) }
    }

    /// - Returns: the replacement; nil if the reference stays.
    @discardableResult
    private mutating func rewrite(_ text: MPDElement.Text?, _ scopes: [AddressScope]) -> String? {
        guard let text, let replacement = replacement(for: text.reference, scopes) else { return nil }
        replace(text.range, with: replacement)
        return replacement
    }

    /// Nil if the reference is right for all of the bases.
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

    /// XML 1.0 §2.4: valid in text and in attributes with either quote.
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
    /// Whether it has bases of its own.
    fileprivate var isLevel: Bool { name == .period || name == .adaptationSet || name == .representation }
}

extension AddressScope {
    /// In a template, a dollar sign of a base would begin an identifier: it is doubled (ISO/IEC 23009-1
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
