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
    /// - Throws: if addresses were left out, as rewriting would then lead clients past the proxy, or the text would grow beyond `PlaylistLimits.expansion`.
    package func edits(for form: ProxyForm, at client: OriginURL) throws(FeedError) -> [AddressEdit] {
        guard addresses.isComplete else { throw .incomplete }
        var rewriting = FeedRewriting(form: form, client: client, isXML: kind != .m3u && kind != .pls)
        for address in addresses.all where rewriting.added <= PlaylistLimits.expansion { rewriting.take(address) }
        guard rewriting.added <= PlaylistLimits.expansion else { throw .tooLarge("its addresses, rewritten") }
        return rewriting.edits.sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    /// The text with these edits applied.
    /// - Parameter bytes: the bytes from which the feed was read.
    package func rewritten(_ bytes: [UInt8], for form: ProxyForm, at client: OriginURL) throws(FeedError) -> [UInt8] {
        try edits(for: form, at: client).applied(to: bytes)
    }
}

private struct FeedRewriting {
    let form: ProxyForm
    let client: OriginURL
    let isXML: Bool
    private(set) var edits: [AddressEdit] = []
    /// Bytes of all replacements so far. Replacements beyond the limit are dropped.
    private(set) var added = 0
    private var rewriters: [OriginURL: AddressRewriter] = [:]

    init(form: ProxyForm, client: OriginURL, isXML: Bool) {
        self.form = form
        self.client = client
        self.isXML = isXML
    }

    mutating func take(_ address: FeedAddresses.Address) {
        let scope = AddressScope(origin: address.base, client: client)
        var rewriter = rewriters[address.base] ?? AddressRewriter(scope, form: form)
        // Feeds with a base for each item are rare: further rewriters are not kept.
        defer { if rewriters.count < 64 { rewriters[address.base] = rewriter } }
        let written =
            address.hasOwnBase
            ? rewriter.absolute(address.reference) : rewriter.replacement(for: address.reference)
        guard let written else { return }
        var replacement = isXML ? XMLCharacter.escaped(written) : written
        // A slash before the end of a tag would end the element too, where the value has no quotes.
        if isXML, replacement.hasSuffix("/"), !address.reference.hasSuffix("/") {
            replacement = replacement.dropLast() + "&#47;"
        }
        added += replacement.utf8.count
        if added <= PlaylistLimits.expansion {
            edits.append(AddressEdit(range: address.range, replacement: replacement))
        }
    }
}
