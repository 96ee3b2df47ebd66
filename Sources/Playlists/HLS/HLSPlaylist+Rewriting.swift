import CachePolicy

extension HLSPlaylist {
    /// The edits by which a client finds everything that the playlist refers to through the proxy.
    ///
    /// A reference that already leads there stays as it is, with its variables; any other one is replaced by the
    /// proxy's absolute form. References that are not fetched over HTTP (`data:`, `skd:`, `urn:`, unknown schemes)
    /// stay.
    /// - Parameters:
    ///   - form: how the client reaches an origin's URLs.
    ///   - client: the URL by which the client requested this playlist, without dot segments.
    /// - Throws: if the text would grow beyond `PlaylistLimits.expansion`.
    package func edits(for form: ProxyForm, at client: OriginURL) throws(PlaylistError) -> [AddressEdit] {
        var rewriter = AddressRewriter(AddressScope(origin: base, client: client), form: form)
        var edits = queryVariables.compactMap { $0.edit(for: client) }
        var added = 0
        for address in addresses {
            guard let replacement = rewriter.replacement(for: address.reference) else { continue }
            let text = Self.escaped(replacement)
            added += text.utf8.count
            guard added <= PlaylistLimits.expansion else {
                throw .tooLarge("the playlist is too large with its addresses rewritten")
            }
            edits.append(AddressEdit(range: address.range, replacement: text))
        }
        return edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    /// Encodes characters that a quoted value or a text with variables cannot contain. They do not occur unencoded
    /// in URLs (RFC 3986 §2).
    private static func escaped(_ url: String) -> String {
        guard url.hasByte(of: Array("\"{".utf8)) else { return url }
        return url.replacing("\"", with: "%22").replacing("{$", with: "%7B$")
    }
}

extension QueryVariable {
    /// Replaces the query parameter by its value: after a redirect, the client's URL does not have the parameter.
    fileprivate func edit(for client: OriginURL) -> AddressEdit? {
        guard Self.value(of: name, in: client) != value else { return nil }
        return AddressEdit(range: range, replacement: "NAME=\"\(name)\",VALUE=\"\(value)\"")
    }
}
