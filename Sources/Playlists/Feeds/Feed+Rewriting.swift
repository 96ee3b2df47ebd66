import CachePolicy
import HTTPModel

extension Feed {
    /// The edits after which a client fetches media, images, further pages and the feed itself through the proxy.
    ///
    /// References that already lead to the proxy stay unchanged; others become its absolute form, escaped for XML.
    /// Links to web pages, GUIDs and all other bytes stay. Below an `xml:base`, which some clients use and others
    /// ignore, all references become absolute. A feed in UTF-16 has no edits.
    /// - Parameters:
    ///   - form: how the client reaches an origin's URLs.
    ///   - client: the URL that the client requested.
    /// - Throws: if addresses were left out, as rewriting would then lead clients past the proxy, or if the budget is
    ///   spent.
    package func edits(for form: ProxyForm, at client: OriginURL, within budget: WorkBudget) throws(FeedError)
        -> [AddressEdit]
    {
        guard addresses.isComplete else { throw .incomplete }
        var rewriting = Rewriting(
            form: form, client: client, isXML: kind != .m3u && kind != .pls, budget: budget)
        do throws(PlaylistError) {
            for address in addresses.all { try rewriting.take(address) }
        } catch { throw FeedError(error) }
        return rewriting.edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }
}

extension Feed {
    private struct Rewriting {
        let form: ProxyForm
        let client: OriginURL
        let isXML: Bool
        let budget: WorkBudget
        private(set) var edits: [AddressEdit] = []
        private var rewriters: [ObjectIdentifier: AddressRewriter] = [:]

        init(form: ProxyForm, client: OriginURL, isXML: Bool, budget: WorkBudget) {
            (self.form, self.client, self.isXML, self.budget) = (form, client, isXML, budget)
        }

        mutating func take(_ address: FeedAddresses.Address) throws(PlaylistError) {
            let scope = AddressRewriter.Scope(origin: address.base.url, client: client),
                name = ObjectIdentifier(address.base)
            var rewriter = rewriters[name] ?? AddressRewriter(scope, form: form, within: budget)
            let written =
                try address.base.isStated
                ? rewriter.absolute(address.reference) : rewriter.replacement(for: address.reference)
            // Feeds with a base for each item are rare: further rewriters are not kept.
            if rewriters.count < 64 { rewriters[name] = rewriter }
            guard let written else { return }
            var replacement = isXML ? XMLCharacter.escaped(written) : written
            // A slash before the end of a tag would end the element too, where the value has no quotes.
            if isXML, replacement.hasSuffix("/"), !address.reference.hasSuffix("/") {
                replacement = replacement.dropLast() + "&#47;"
            }
            edits.append(AddressEdit(range: address.range, replacement: replacement))
        }
    }
}
