import CachePolicy
import HTTPModel
import Synchronization
import Upstream

/// How long a 404 or 410 answers further requests although its origin states no lifetime.
package struct ExpectedAbsence: Sendable {
    private let duration: Duration
    let isExpected: @Sendable () -> Bool

    /// - Parameter isExpected: whether that may still be so; called for each request that it would answer.
    package init(lasting duration: Duration, while isExpected: @escaping @Sendable () -> Bool) {
        (self.duration, self.isExpected) = (duration, isExpected)
    }

    /// - Parameter instant: when the origin answered, in nanoseconds of a monotonic clock.
    func timing(at instant: UInt64) -> LiveTiming {
        LiveTiming(
            freshFor: UInt64(clamping: Int64(saturating: duration.inSeconds * 1e9)), silentAfter: .max,
            answeredAt: instant)
    }
}

/// What a client asks of an origin: a URL, a part of it, and the request fields that the origin gets.
package final class Demand: Sendable {
    package let url: OriginURL
    /// The same as text.
    let address: String
    /// The requested part; nil for the whole.
    package let span: ByteRangeSpec?
    package let resolvedRule: ResolvedRule
    package let directives: RequestDirectives
    /// The cache key of the presentation that this is a part of; nil if it stands alone.
    package let whole: CacheKey?
    /// Makes out how long an error says that the origin does not have it yet; nil where only the error itself does.
    let absence: (@Sendable () -> ExpectedAbsence?)?
    /// The client's request; nil for requests of the proxy's own.
    private let request: RequestHead?
    private let isTransparent: Bool
    /// Whether a trusted proxy states for whom it is (`Forwarded`, `X-Forwarded-For`).
    private let isForwarded: Bool
    /// Whether cookies reach the origin, and its own the client: they know each other.
    let passesCookies: Bool
    /// Whether the proxy keeps what origins set, as a browser does, and sends it to them. Not in place of a client that
    /// knows them, nor for a page of another site: on this machine, a page and a player have the same address.
    let keepsCookies: Bool
    /// The address under which its client is counted; nil for the proxy itself.
    package let client: IPAddress?
    private let passesCredentials: Bool
    private let referrer: Referrer
    private let passedFields = AtomicLazyReference<PassedFields>()

    private final class PassedFields: Sendable {
        let fields: HeaderFields

        init(_ fields: HeaderFields) { self.fields = fields }
    }

    /// - Parameters:
    ///   - address: the URL as text, if that is known.
    ///   - absence: makes out how long an error says that the origin does not have it yet; nil where only the error
    ///     itself does.
    ///   - isTransparent: whether the client takes the proxy for the origin itself, or for the way to it.
    ///   - isForwarded: whether a trusted proxy states for whom it is: what anybody else states is not passed on.
    ///   - passesCookies: whether cookies reach the origin: they are meant for it if the client knows it by its own
    ///     name, or if it is the only one behind the proxy.
    ///   - keepsCookies: whether the proxy keeps origins' cookies for the client.
    ///   - passesCredentials: whether `Authorization` is meant for this origin.
    ///   - referrer: the value of `Referer` for the origin.
    package init(
        url: OriginURL, as address: String? = nil, span: ByteRangeSpec?, request: RequestHead?,
        directives: RequestDirectives, resolvedRule: ResolvedRule = ResolvedRule(), whole: CacheKey? = nil,
        absence: (@Sendable () -> ExpectedAbsence?)? = nil,
        isTransparent: Bool = false, isForwarded: Bool = false, passesCookies: Bool = false,
        keepsCookies: Bool = true, passesCredentials: Bool = true,
        referrer: Referrer = .asSent, client: IPAddress? = nil
    ) {
        self.url = url
        self.address = address ?? url.absolute
        self.span = span
        self.request = request
        self.resolvedRule = resolvedRule
        self.whole = whole
        self.absence = absence
        self.isTransparent = isTransparent
        self.isForwarded = isForwarded
        self.passesCookies = passesCookies
        self.keepsCookies = keepsCookies && resolvedRule.terms.kind == .private
        self.passesCredentials = passesCredentials
        self.referrer = referrer
        self.client = client
        self.directives = directives
    }

    /// A request that the proxy makes by itself.
    package convenience init(
        url: OriginURL, span: ByteRangeSpec?, resolvedRule: ResolvedRule, whole: CacheKey? = nil
    ) {
        self.init(
            url: url, span: span, request: nil, directives: RequestDirectives(cacheControl: nil, pragma: nil),
            resolvedRule: resolvedRule, whole: whole)
    }

    /// The same demand for another part; nil for the whole.
    package func of(_ span: ByteRangeSpec?) -> Demand {
        Demand(
            url: url, as: address, span: span, request: request, directives: directives, resolvedRule: resolvedRule,
            whole: whole, absence: absence, isTransparent: isTransparent, isForwarded: isForwarded,
            passesCookies: passesCookies, keepsCookies: keepsCookies, passesCredentials: passesCredentials,
            referrer: referrer, client: client)
    }

    /// The demand for what the same client will request next: with its request fields, but without those that concern
    /// the first request alone. Cookies and credentials go only to the origin that the client named.
    package func next(
        _ url: OriginURL, span: ByteRangeSpec?, resolvedRule: ResolvedRule, whole: CacheKey?
    ) -> Demand {
        let isSame = OriginURL.areSameOrigin(url, self.url)
        return Demand(
            url: url, span: span, request: request, directives: RequestDirectives(), resolvedRule: resolvedRule,
            whole: whole, isTransparent: isTransparent, isForwarded: isForwarded && isSame,
            passesCookies: passesCookies && isSame, keepsCookies: keepsCookies,
            passesCredentials: passesCredentials && isSame, referrer: referrer, client: client)
    }

    /// Whether another proxy sends the request (RFC 9110 §7.6.3).
    var isOfProxy: Bool { request?.combined("Via") != nil }

    /// Whether the client expects media, so that a web page cannot be the right answer.
    var expectsMedia: Bool {
        // A playlist or a resolver names this resource, so it is media, whatever its URL looks like.
        whole != nil || resolvedRule.resolver != nil
            || StrayPage.expectsMedia(at: url, destination: request?.value(of: "Sec-Fetch-Dest"))
    }

    /// The client's request fields for the origin, without hop-by-hop fields and those that the proxy sets itself.
    ///
    /// A browser keeps cookies by host, and sees all origins behind the proxy as one host. With several origins,
    /// cookies are removed: they would reach origins that they are not meant for.
    private var fields: HeaderFields {
        (passedFields.load() ?? passedFields.storeIfNil(PassedFields(fieldsToPass()))).fields
    }

    private func fieldsToPass() -> HeaderFields {
        guard var fields = request?.fields else { return Self.fieldsOfProxy }
        fields.removeHopByHop()
        fields.remove(allOf: Self.withheld)
        if !passesCookies { fields.remove("Cookie") }
        if !passesCredentials { for name in HeaderFields.credentials { fields.remove(name) } }
        if !isForwarded { fields.removeForwarding() }
        if !isTransparent { fields.lines.removeAll { SiteFields.isOfClient($0.name) } }
        referrer.replace(in: &fields)
        // curl would add it, and origins may select by it.
        if fields["Accept"] == nil { fields.append("Accept", "*/*") }
        return fields
    }

    private static let fieldsOfProxy = HeaderFields([.init(name: "Accept", value: "*/*")])

    /// The fields for the origin that the client has named.
    package var sentFields: HeaderFields { fields(to: address) }

    /// The same with the client's `Cache-Control` and `Pragma` (RFC 9111 §5.2), for requests that open a resource
    /// rather than fill a gap.
    func openingFields(to url: String) -> HeaderFields {
        var fields = fields(to: url)
        // A rule's own field wins.
        for name in ["Cache-Control", "Pragma"] as [StaticString] where fields.combined("\(name)") == nil {
            if let value = request?.combined(name) { fields.append("\(name)", value) }
        }
        return fields
    }

    /// The client's fields and those that the rules set for this origin.
    /// - Parameter url: the URL that is requested. The rules' fields, and the client's fields of the same names, go
    ///   only to the origin that the client has named (RFC 9110 §15.4). A redirect to another origin gets neither these
    ///   nor credentials.
    func fields(to url: String) -> HeaderFields {
        var fields = fields
        if url == address || OriginURL.areSameOrigin(url, address) {
            for line in resolvedRule.headers.lines { fields.replace(line.name, line.value) }
        } else {
            for name in HeaderFields.credentials + confined { fields.remove(name) }
            if let value = fields["Referer"] { Referrer(redirected: value, to: url).replace(in: &fields) }
        }
        return fields
    }

    /// The cookies that go with it; nil if the client keeps its own.
    /// - Parameter key: the resource's, for one that stands alone.
    package func cookies(in jars: CookieJars, or key: CacheKey) -> CookieJars.Use? {
        keepsCookies ? CookieJars.Use(jars, of: whole ?? key.withoutVariant, given: resolvedRule.cookies) : nil
    }

    /// What decides about storing its response.
    /// - Parameter setsCookies: whether a redirect that led to the response has set a cookie that its client takes.
    func storing(setsCookies: Bool) -> Storing.Request {
        Storing.Request(
            directives, isAuthorized: isAuthorized, passesCookies: passesCookies, setsCookies: setsCookies)
    }

    /// Whether the origin gets credentials of the client's own in `Authorization`. What a rule sends is for all who use
    /// the proxy.
    package var isAuthorized: Bool {
        // Most requests have none: what else they have is not read for that.
        passesCredentials && request?.combined("Authorization") != nil && fields["Authorization"] != nil
            && resolvedRule.headers["Authorization"] == nil
    }

    /// Names of fields that must not follow a redirect to another origin.
    var confined: [String] { resolvedRule.headers.lines.map(\.name) }

    private static let withheld: FieldNames = [
        "Host", "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
        "Accept-Encoding", "Content-Length",
        "Cache-Control", "Pragma", "Expect",
    ]
}

extension HeaderFields {
    /// Lets a parent answer only with what its origin has just confirmed (RFC 9111 §5.2.1.4).
    mutating func demandValidation() { replace("Cache-Control", "no-cache") }
}
