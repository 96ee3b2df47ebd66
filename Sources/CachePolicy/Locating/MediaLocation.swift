import HTTPModel

/// Where the media of a URL is at the moment, and what to send with a request for it: what a resolver printed, or the
/// address that a rule has for expired links.
package struct MediaLocation: Sendable, Equatable {
    package let url: OriginURL
    /// Fields for the origin, which replace the player's fields of the same name.
    package let headers: HeaderFields
    /// When the address expires, in seconds since 1970; nil if unknown.
    package let expires: Int64?
    /// A name that the same media has at all its addresses; nil if it has none.
    package let key: String?
    /// What to call a file of it, with an extension; nil if unknown.
    package let fileName: String?

    package init(
        url: OriginURL, headers: HeaderFields = HeaderFields(), expires: Int64? = nil, key: String? = nil,
        fileName: String? = nil
    ) {
        (self.url, self.headers, self.expires, self.key, self.fileName) = (url, headers, expires, key, fileName)
    }

    /// Adds the fields to a request. Another origin, to which this one redirected, gets only those that say nothing
    /// about the client or its rights.
    package func addHeaders(to fields: inout HeaderFields, for requested: String) {
        let isSame = requested == url.absolute || OriginURL.areSameOrigin(requested, url.absolute)
        for line in headers.lines where isSame || Self.openFields.contains(line.name) {
            fields.replace(line.name, line.value)
        }
        // As with a redirect: the page's whole URL is for its own site.
        if !isSame, let page = fields["Referer"] { Referrer(redirected: page, to: requested).replace(in: &fields) }
    }

    /// Names of fields that must not follow a redirect to another origin.
    package var confined: [String] { headers.lines.map(\.name).filter { !Self.openFields.contains($0) } }

    private static let openFields: FieldNames = [
        "accept", "accept-language", "referer", "sec-fetch-mode", "user-agent",
    ]

    /// Whether a status may mean that a link has expired.
    package static func isExpired(status: Int) -> Bool { [401, 403, 404, 410].contains(status) }
}
