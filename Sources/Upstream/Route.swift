import CachePolicy
import HTTPModel

/// The URL and the fields of the next request: each redirect changes them (RFC 9110 §15.4). A value.
struct Route {
    private(set) var url: UpstreamURL
    private(set) var fields: HeaderFields
    /// The number of redirects followed so far.
    private(set) var redirects = 0
    /// Whether all redirects so far were permanent (RFC 9110 §15.4.2, §15.4.9), and there was one at least.
    private(set) var hasMoved = false
    /// The last redirect's `Location`; nil before the first.
    private(set) var location: String?
    /// Those of the presentation, and those that the redirects have set.
    var cookies: CookieJars.Jar
    private let confined: [String]

    /// nil if the request's URL is invalid.
    init?(_ request: UpstreamRequest) {
        guard let url = UpstreamURL(request.url) else { return nil }
        (self.url, fields, confined) = (url, request.fields, request.confined)
        cookies = request.cookies?.jar ?? CookieJars.Jar()
    }

    /// Follows a redirect to `location`.
    /// - Parameters:
    ///   - status: the redirect's.
    ///   - limit: the most redirects to follow in all.
    mutating func follow(_ location: String, status: Int, limit: Int) throws(UpstreamError) {
        guard redirects < limit else { throw .tooManyRedirects(limit: limit) }
        guard let next = url.resolving(location) else { throw .badRedirect(location: location) }
        hasMoved = (hasMoved || redirects == 0) && [301, 308].contains(status)
        redirects += 1
        self.location = location
        if !next.hasSameOrigin(as: url) {
            // Fields meant for one origin must not reach another; nor the first one again, when a redirect leads back.
            for name in HeaderFields.credentials + confined { fields.remove(name) }
            if let page = fields["Referer"] { Referrer(redirected: page, to: next.text).replace(in: &fields) }
        }
        url = next
    }
}
