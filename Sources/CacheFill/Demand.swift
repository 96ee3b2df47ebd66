import CachePolicy
import HTTPModel

/// What a client asks an origin for.
package final class Demand: Sendable {
    package let url: OriginURL
    /// nil for the whole.
    package let span: ByteRangeSpec?
    package let treatment: Treatment
    package let directives: RequestDirectives
    private let request: RequestHead
    private let passesCookies: Bool

    /// - Parameter passesCookies: whether the client knows the origin by its own name, or asks the only one there is: then its cookies are
    ///   meant for it.
    package init(url: OriginURL, span: ByteRangeSpec?, request: RequestHead, treatment: Treatment = Treatment(), passesCookies: Bool = false) {
        self.url = url
        self.span = span
        self.request = request
        self.treatment = treatment
        self.passesCookies = passesCookies
        directives = RequestDirectives(cacheControl: request.combined("Cache-Control"), pragma: request.combined("Pragma"))
    }

    /// The same demand, for another part.
    func of(_ span: ByteRangeSpec) -> Demand { Demand(url: url, span: span, request: request, treatment: treatment, passesCookies: passesCookies) }

    /// The client's fields that go to the origin: all that are not about this hop, and that the proxy does not speak itself.
    ///
    /// In path form cookies stay here: a browser keeps them by host, and to it every origin behind the proxy is the same host, so they
    /// would reach origins that they were not meant for. Nor is a page's `Origin` told there: the proxy itself answers that.
    package var fields: FieldLines {
        var fields = request.fields
        fields.removeHopByHop()
        for name in Self.withheld { fields.remove(name) }
        if !passesCookies { for name in ["Cookie", "Origin"] { fields.remove(name) } }
        return fields
    }

    /// The same, with what the client says of caches on the way (RFC 9111 §5.2): for requests that are not for parts of what is known.
    var openingFields: FieldLines {
        var fields = fields
        for name in ["Cache-Control", "Pragma"] as [StaticString] {
            if let value = request.combined(name) { fields.append("\(name)", value) }
        }
        return fields
    }

    private static let withheld = [
        "Host", "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Accept-Encoding", "Content-Length",
        "Cache-Control", "Pragma", "Expect",
    ]
}
