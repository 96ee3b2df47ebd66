import CachePolicy
import Glibc
import HTTPModel

/// The head of the final response, after redirects and interim (1xx) responses.
package struct UpstreamHead: Sendable {
    package let status: Int
    /// As received, in order; without trailers.
    package let fields: HeaderFields
    /// Where the response came from, after redirects.
    package let finalURL: String
    /// The length of this response's body (for a HEAD: of the body that a GET would have); nil if it is not stated.
    package let contentLength: Int64?
    /// nil if it is missing or invalid, or if there are several that differ.
    package let contentRange: ContentRange?
    /// Where the servers involved are, those of redirects included.
    package let scope: AddressScope
    /// Whether redirects led to `finalURL`, all of them permanent (301, 308).
    package let hasMoved: Bool
    /// Unix seconds.
    package let receivedAt: Int64

    package init(
        status: Int, fields: HeaderFields, finalURL: String, contentLength: Int64?, scope: AddressScope = .private,
        hasMoved: Bool = false, receivedAt: Int64
    ) {
        self.status = status
        self.fields = fields
        self.finalURL = finalURL
        self.contentLength = contentLength
        let ranges = Set(fields.all("Content-Range"))
        contentRange = ranges.count == 1 ? ranges.first.flatMap(ContentRange.init(parsing:)) : nil
        self.scope = scope
        self.hasMoved = hasMoved
        self.receivedAt = receivedAt
    }

    /// Whether all servers involved have public addresses.
    package var isFromPublicAddress: Bool { scope == .public }
}
