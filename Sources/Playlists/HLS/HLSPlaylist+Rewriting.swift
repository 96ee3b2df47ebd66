import CachePolicy
import HTTPModel

extension HLSPlaylist {
    /// The edits by which a client finds everything that the playlist refers to through the proxy.
    ///
    /// A reference that already leads there stays as it is, with its variables; any other one is replaced by the
    /// proxy's absolute form. References that are not fetched over HTTP (`data:`, `skd:`, `urn:`, unknown schemes)
    /// stay.
    /// - Parameters:
    ///   - form: how the client reaches an origin's URLs.
    ///   - client: the URL by which the client requested this playlist, without dot segments.
    /// - Throws: if the budget is spent.
    package func edits(for form: ProxyForm, at client: OriginURL, within budget: WorkBudget) throws(PlaylistError)
        -> [AddressEdit]
    {
        var rewriter = AddressRewriter(AddressRewriter.Scope(origin: base, client: client), form: form, within: budget)
        try budget.take(queryVariables.count *| client.pathAndQuery.utf8.count)
        var edits = queryEdits(at: client)
        for address in addresses {
            guard let replacement = try rewriter.replacement(for: address.reference) else { continue }
            edits.append(AddressEdit(range: address.range, replacement: Self.escaped(replacement)))
        }
        return edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    /// The edits by which variables have the values that they have by the URL that answered.
    /// - Parameter client: the URL by which a client requests the playlist.
    package func queryEdits(at client: OriginURL) -> [AddressEdit] {
        queryVariables.compactMap { $0.edit(for: client) }
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
