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
    /// - Throws: if the budget is spent.
    package func edits(for form: ProxyForm, at client: OriginURL, within budget: WorkBudget) throws(PlaylistError)
        -> [AddressEdit]
    {
        let document = AddressRewriter.Scope(origin: base, client: client)
        var rewriting = MPDRewriting(document: document, form: form, budget: budget)
        _ = try rewriting.visit(root, [document])
        return rewriting.edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }
}

/// Walks an MPD from the outside in. The segment addresses of a level are resolved against the bases of the
/// representations below it, which are known last; so a level's own addresses are rewritten after its children's.
private struct MPDRewriting {
    let document: AddressRewriter.Scope
    let form: ProxyForm
    let budget: WorkBudget
    private(set) var edits: [AddressEdit] = []
    private var rewriters: [AddressRewriter.Scope: AddressRewriter] = [:]
    /// The last one: most addresses have the same bases.
    private var last: (scope: AddressRewriter.Scope, rewriter: AddressRewriter)?

    init(document: AddressRewriter.Scope, form: ProxyForm, budget: WorkBudget) {
        (self.document, self.form, self.budget) = (document, form, budget)
    }

    /// - Parameter outer: the bases of the level above, as alternatives.
    /// - Returns: the bases of the representations below, or the level's own if there are none.
    mutating func visit(_ element: MPDElement, _ outer: [AddressRewriter.Scope]) throws(PlaylistError)
        -> [AddressRewriter.Scope]
    {
        try rewrite(element.addresses["xlink:href"], [document])
        let scopes = try enter(element.children(.baseURL, budget), outer)
        var leaves: [AddressRewriter.Scope] = []
        for child in element.children where child.isLevel { leaves = try union(leaves, visit(child, scopes)) }
        if leaves.isEmpty { leaves = scopes }
        for child in element.children { try visitAddresses(child, leaves, scopes) }
        return leaves
    }

    // MARK: - Bases

    /// Applies a level's own bases to those of the level above.
    private mutating func enter(_ elements: [MPDElement], _ outer: [AddressRewriter.Scope]) throws(PlaylistError)
        -> [AddressRewriter.Scope]
    {
        guard !elements.isEmpty else { return outer }
        var scopes: [AddressRewriter.Scope] = []
        for element in elements { scopes = try union(scopes, enter(element, outer)) }
        return scopes
    }

    private mutating func enter(_ element: MPDElement, _ outer: [AddressRewriter.Scope]) throws(PlaylistError)
        -> [AddressRewriter.Scope]
    {
        let reference = element.content?.reference ?? ""
        // An empty element has no room for another reference, and needs none: its base is that of the level above.
        let written = try rewrite(element.content, outer) ?? reference
        let scopes = try outer.map { scope throws(PlaylistError) -> AddressRewriter.Scope? in
            guard let origin = try scope.origin.resolving(reference, within: budget),
                let client = try scope.client.resolving(written, within: budget)
            else { return nil }
            return AddressRewriter.Scope(origin: origin, client: client)
        }
        return scopes.compactMap(\.self)
    }

    /// Without duplicates, and no more than any real MPD has.
    private func union(_ a: [AddressRewriter.Scope], _ b: [AddressRewriter.Scope]) throws(PlaylistError)
        -> [AddressRewriter.Scope]
    {
        var all = a
        for scope in b where all.count < PlaylistLimits.baseURLs {
            try budget.take(all.count)
            if !all.contains(scope) { all.append(scope) }
        }
        return all
    }

    // MARK: - Addresses

    private mutating func visitAddresses(
        _ element: MPDElement, _ leaves: [AddressRewriter.Scope], _ level: [AddressRewriter.Scope]
    )
        throws(PlaylistError)
    {
        switch element.name {
        case .segmentTemplate, .segmentList, .segmentBase: try visitSegments(element, leaves)
        case .location, .patchLocation, .contentSteering: try rewrite(element.content, [document])
        case .utcTiming: try rewriteTimes(element, level)
        case .eventStream: try rewrite(element.addresses["xlink:href"], [document])
        default: break
        }
    }

    private mutating func visitSegments(_ element: MPDElement, _ scopes: [AddressRewriter.Scope]) throws(PlaylistError)
    {
        try rewrite(element.addresses["xlink:href"], [document])
        let isTemplate = element.name == .segmentTemplate
        // To look for dollar signs.
        for scope in isTemplate ? scopes : [] { try budget.take(scope.origin.pathAndQuery.utf8.count / 4) }
        for name in element.name.addresses {
            try rewrite(element.addresses[name], isTemplate ? scopes.map(\.escapingTemplates) : scopes)
        }
        for child in element.children {
            for name in child.name.addresses { try rewrite(child.addresses[name], scopes) }
        }
        for entry in element.segmentURLs {
            try rewrite(entry.media, scopes)
            try rewrite(entry.index, scopes)
        }
    }

    /// Rewrites a list of addresses in one attribute.
    private mutating func rewriteTimes(_ element: MPDElement, _ scopes: [AddressRewriter.Scope]) throws(PlaylistError) {
        guard let value = element.addresses["value"], !element.timeReferences.isEmpty else { return }
        let references = element.timeReferences
        var written: [String] = []
        for reference in references { written.append(try replacement(for: reference, scopes) ?? reference) }
        if written != references { replace(value.range, with: written.joined(separator: " ")) }
    }

    /// - Returns: the replacement; nil if the reference stays.
    @discardableResult
    private mutating func rewrite(_ text: MPDElement.Text?, _ scopes: [AddressRewriter.Scope]) throws(PlaylistError)
        -> String?
    {
        guard let text, let replacement = try replacement(for: text.reference, scopes) else { return nil }
        replace(text.range, with: replacement)
        return replacement
    }

    /// Nil if the reference is right for all of the bases.
    private mutating func replacement(for reference: String, _ scopes: [AddressRewriter.Scope]) throws(PlaylistError)
        -> String?
    {
        for scope in scopes {
            guard
                let replacement = try use(
                    scope,
                    { rewriter throws(PlaylistError) in
                        try rewriter.replacement(for: reference)
                    })
            else { continue }
            if scope == scopes.first { return replacement }
            return try use(scopes[0]) { rewriter throws(PlaylistError) in try rewriter.absolute(reference) }
        }
        return nil
    }

    private mutating func use(
        _ scope: AddressRewriter.Scope, _ use: (inout AddressRewriter) throws(PlaylistError) -> String?
    ) throws(PlaylistError) -> String? {
        if last?.scope != scope {
            // To find its rewriter.
            try budget.take(scope.origin.pathAndQuery.utf8.count &+ scope.client.pathAndQuery.utf8.count)
            if let last { rewriters[last.scope] = last.rewriter }
            last = (scope, rewriters[scope] ?? AddressRewriter(scope, form: form, within: budget))
        }
        var rewriter = last?.rewriter ?? AddressRewriter(scope, form: form, within: budget)
        last = nil
        defer { last = (scope, rewriter) }
        return try use(&rewriter)
    }

    private mutating func replace(_ range: Range<Int>, with text: String) {
        edits.append(AddressEdit(range: range, replacement: Self.escaped(text)))
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

extension AddressRewriter.Scope {
    /// In a template, a dollar sign of a base would begin an identifier: it is doubled (ISO/IEC 23009-1
    /// §5.3.9.4.4).
    fileprivate var escapingTemplates: AddressRewriter.Scope {
        AddressRewriter.Scope(origin: origin.escapingTemplates, client: client.escapingTemplates)
    }
}

extension OriginURL {
    fileprivate var escapingTemplates: OriginURL {
        guard pathAndQuery.utf8.contains(UInt8(ascii: "$")) else { return self }
        return at(pathAndQuery.replacing("$", with: "$$")) ?? self
    }
}
