import CachePolicy
import HTTPModel

/// Where a request is sent, and with which fields: each redirect changes it (RFC 9110 §15.4). A value.
struct Route {
    private(set) var url: UpstreamURL
    private(set) var fields: HeaderFields
    /// Redirects that were followed so far.
    private(set) var redirects = 0
    /// As the last of them had it; nil before the first.
    private(set) var location: String?
    private let confined: [String]

    /// nil where the request's URL is none.
    init?(_ request: UpstreamRequest) {
        guard let url = UpstreamURL(request.url) else { return nil }
        (self.url, fields, confined) = (url, request.fields, request.confined)
    }

    /// The answer was a redirect to `location`.
    /// - Parameter limit: how many redirects may be followed in all.
    mutating func follow(_ location: String, limit: Int) throws(UpstreamError) {
        guard redirects < limit else { throw .tooManyRedirects(limit: limit) }
        guard let next = url.resolving(location) else { throw .badRedirect(location: location) }
        redirects += 1
        self.location = location
        if !next.hasSameOrigin(as: url) {
            // What was meant for one origin is not told to another, nor to the first when a redirect leads back.
            for name in HeaderFields.credentials + confined { fields.remove(name) }
            if let page = fields["Referer"] { Referrer(redirected: page, to: next.text).replace(in: &fields) }
        }
        url = next
    }
}
