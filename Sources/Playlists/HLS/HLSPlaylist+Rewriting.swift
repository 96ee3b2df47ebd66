import CachePolicy

extension HLSPlaylist {
    /// What to change so that a client finds all that the playlist names through the proxy.
    ///
    /// A reference that leads there by itself stays as it is, with its variables; of another one the proxy's absolute
    /// form is written. What is not fetched over HTTP (`data:`, `skd:`, `urn:`, unknown schemes) stays.
    /// - Parameters:
    ///   - form: how the client reaches an origin's URLs.
    ///   - client: the URL under which the client has asked for this playlist, without dot segments.
    /// - Throws: where the text would grow beyond `PlaylistLimits.expansion`.
    package func edits(for form: ProxyForm, at client: OriginURL) throws(PlaylistError) -> [AddressEdit] {
        var rewriter = AddressRewriter(AddressScope(origin: base, client: client), form: form)
        var edits = queryVariables.compactMap { $0.edit(for: client) }
        var added = 0
        for address in addresses {
            guard let replacement = rewriter.replacement(for: address.reference) else { continue }
            let text = Self.escaped(replacement)
            added += text.utf8.count
            guard added <= PlaylistLimits.expansion else {
                throw .tooLarge("the playlist with its addresses rewritten")
            }
            edits.append(AddressEdit(range: address.range, replacement: text))
        }
        return edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    /// What neither a quoted value nor a text with variables can hold. No URL has these characters as they are (RFC
    /// 3986 §2).
    private static func escaped(_ url: String) -> String {
        guard url.hasByte(of: Array("\"{".utf8)) else { return url }
        return url.replacing("\"", with: "%22").replacing("{$", with: "%7B$")
    }
}

extension QueryVariable {
    /// Behind a redirect the client's URL does not have the parameter: its value is written down.
    fileprivate func edit(for client: OriginURL) -> AddressEdit? {
        guard Self.value(of: name, in: client) != value else { return nil }
        return AddressEdit(range: range, replacement: "NAME=\"\(name)\",VALUE=\"\(value)\"")
    }
}
