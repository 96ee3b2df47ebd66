import Glibc
import HTTPModel

/// The head of the response that counts: after redirects and interim (1xx) responses.
package struct UpstreamHead: Sendable {
    package let status: Int
    /// As they came, in their order; trailers are not among them.
    package let fields: HeaderFields
    /// Where the response came from, after redirects.
    package let finalURL: String
    /// Bytes of this response's body (of a HEAD: of the body that a GET would have); nil where it is not told.
    package let contentLength: Int64?
    /// nil where it is none that can be used, and where there are two that differ.
    package let contentRange: ContentRange?
    /// Whether all servers that it came from, redirects included, are at public addresses.
    package let isFromPublicAddress: Bool
    /// Unix seconds.
    package let receivedAt: Int64

    package init(
        status: Int, fields: HeaderFields, finalURL: String, contentLength: Int64?, isFromPublicAddress: Bool = false,
        receivedAt: Int64
    ) {
        self.status = status
        self.fields = fields
        self.finalURL = finalURL
        self.contentLength = contentLength
        let ranges = Set(fields.all("Content-Range"))
        contentRange = ranges.count == 1 ? ranges.first.flatMap(ContentRange.init(parsing:)) : nil
        self.isFromPublicAddress = isFromPublicAddress
        self.receivedAt = receivedAt
    }
}
