import CachePolicy
import HTTPModel
import Synchronization

/// What a client asks an origin for.
package final class Demand: Sendable {
    package let url: OriginURL
    /// nil for the whole.
    package let span: ByteRangeSpec?
    package let resolvedRule: ResolvedRule
    package let directives: RequestDirectives
    /// The presentation that it is a part of; nil for what stands alone.
    package let whole: CacheKey?
    /// The client's; nil where there is none.
    private let request: RequestHead?
    private let isTransparent: Bool
    private let passesCookies: Bool
    private let passesCredentials: Bool
    private let referrer: Referrer
    private let passedFields = Mutex<HeaderFields?>(nil)

    /// - Parameters:
    ///   - isTransparent: whether the client takes the proxy for the origin, or for the way there.
    ///   - passesCookies: whether the client knows the origin by its own name, or asks the only one there is: then its
    ///     cookies are meant for
    ///     it.
    ///   - passesCredentials: whether `Authorization` is meant for it.
    ///   - referrer: what the origin is told in `Referer`.
    package init(
        url: OriginURL, span: ByteRangeSpec?, request: RequestHead?, directives: RequestDirectives,
        resolvedRule: ResolvedRule = ResolvedRule(), whole: CacheKey? = nil,
        isTransparent: Bool = false, passesCookies: Bool = false, passesCredentials: Bool = true,
        referrer: Referrer = .asSent
    ) {
        self.url = url
        self.span = span
        self.request = request
        self.resolvedRule = resolvedRule
        self.whole = whole
        self.isTransparent = isTransparent
        self.passesCookies = passesCookies
        self.passesCredentials = passesCredentials
        self.referrer = referrer
        self.directives = directives
    }

    /// What the proxy fetches of its own accord.
    package convenience init(
        url: OriginURL, span: ByteRangeSpec?, resolvedRule: ResolvedRule, whole: CacheKey? = nil
    ) {
        self.init(
            url: url, span: span, request: nil, directives: RequestDirectives(cacheControl: nil, pragma: nil),
            resolvedRule: resolvedRule, whole: whole)
    }

    /// The same demand, for another part.
    func of(_ span: ByteRangeSpec) -> Demand {
        Demand(
            url: url, span: span, request: request, directives: directives, resolvedRule: resolvedRule, whole: whole,
            isTransparent: isTransparent,
            passesCookies: passesCookies, passesCredentials: passesCredentials, referrer: referrer)
    }

    /// The same demand, for the whole.
    package var ofWhole: Demand {
        Demand(
            url: url, span: nil, request: request, directives: directives, resolvedRule: resolvedRule, whole: whole,
            isTransparent: isTransparent,
            passesCookies: passesCookies, passesCredentials: passesCredentials, referrer: referrer)
    }

    /// What the same client is about to ask for: with its fields, but for those that were about this request alone.
    /// Credentials go no further than to the origin that it has named.
    package func next(
        _ url: OriginURL, span: ByteRangeSpec?, resolvedRule: ResolvedRule, whole: CacheKey?
    ) -> Demand {
        let isSame = OriginURL.areSameOrigin(url, self.url)
        return Demand(
            url: url, span: span, request: request, directives: RequestDirectives(), resolvedRule: resolvedRule,
            whole: whole, isTransparent: isTransparent, passesCookies: passesCookies && isSame,
            passesCredentials: passesCredentials && isSame, referrer: referrer)
    }

    /// Whether media is asked for, so that a web page cannot be the answer.
    var expectsMedia: Bool {
        // What a playlist names, whatever it is called.
        whole != nil || StrayPage.expectsMedia(at: url, request?.fields ?? HeaderFields())
    }

    /// The client's fields that go to the origin: all that are not about this hop, and that the proxy does not speak
    /// itself.
    ///
    /// A browser keeps cookies by host, and to it every origin behind the proxy is the same host: where there are
    /// several, cookies stay here, or they would reach origins that they were not meant for.
    private var fields: HeaderFields {
        passedFields.withLock { known in
            let fields = known ?? fieldsToPass()
            known = fields
            return fields
        }
    }

    private func fieldsToPass() -> HeaderFields {
        guard var fields = request?.fields else { return HeaderFields() }
        fields.removeHopByHop()
        fields.remove(allOf: Self.withheld)
        if !passesCookies { fields.remove("Cookie") }
        if !passesCredentials { for name in HeaderFields.credentials { fields.remove(name) } }
        if !isTransparent { fields.lines.removeAll { SiteFields.isOfClient($0.name) } }
        referrer.replace(in: &fields)
        return fields
    }

    /// Those that go to the origin that the client has named.
    package var sentFields: HeaderFields { fields(to: url.absolute) }

    /// The same, with what the client says of caches on the way (RFC 9111 §5.2): for requests that are not for parts of
    /// what is known.
    func openingFields(to url: String) -> HeaderFields {
        var fields = fields(to: url)
        // What a rule says is there already.
        for name in ["Cache-Control", "Pragma"] as [StaticString] where fields.combined("\(name)") == nil {
            if let value = request?.combined(name) { fields.append("\(name)", value) }
        }
        return fields
    }

    /// The client's fields and those that the rules have for this origin.
    /// - Parameter url: what is asked for. Fields of the rules are for the origin that the client has named, and so are
    ///   their namesakes of the client's (RFC 9110 §15.4): an origin that it sends us to gets neither, nor credentials.
    func fields(to url: String) -> HeaderFields {
        var fields = fields
        if url == self.url.absolute || OriginURL.areSameOrigin(url, self.url.absolute) {
            for line in resolvedRule.headers.lines { fields.replace(line.name, line.value) }
        } else {
            for name in HeaderFields.credentials + confined { fields.remove(name) }
            if let value = fields["Referer"] { Referrer(redirected: value, to: url).replace(in: &fields) }
        }
        return fields
    }

    /// Names of fields that go along no redirect to another origin.
    var confined: [String] { resolvedRule.headers.lines.map(\.name) }

    private static let withheld: FieldNames = [
        "Host", "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
        "Accept-Encoding", "Content-Length",
        "Cache-Control", "Pragma", "Expect",
    ]
}
