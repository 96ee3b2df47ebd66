import HTTPModel

/// What to ask an origin for: one URL, whole or one range of it.
package struct UpstreamRequest: Sendable {
    package enum Method: Sendable, Equatable {
        case get, head
        /// Sent once, and no redirect is followed: what it does at an origin is not ours to repeat. It takes `Range`
        /// and `Accept-Encoding` from the fields.
        case other(String)

        var followsRedirects: Bool { self == .get || self == .head }
    }

    /// A body that the delegate gives while it is sent (`TransferDelegate`). For other methods than GET and HEAD.
    package enum Content: Sendable, Equatable {
        case none
        /// So many bytes.
        case length(Int64)
        /// As many as come: in chunks, in HTTP/1.1.
        case unknownLength
    }

    /// Who goes first where not all can at once.
    package enum Priority: Sendable, CaseIterable {
        case playback, download
    }

    /// The bytes that are wanted.
    package enum Span: Sendable, Equatable {
        /// Half-open; not empty.
        case bounded(Range<Int64>)
        /// From this offset to the end.
        case from(Int64)
        /// That many bytes at the end.
        case suffix(Int64)

        /// As it goes into `Range`, whose ends are inclusive (RFC 9110 §14.1.2).
        var fieldValue: String {
            switch self {
            case .bounded(let range): "bytes=\(range.lowerBound)-\(range.upperBound - 1)" // no trap: it is not empty
            case .from(let offset): "bytes=\(offset)-"
            case .suffix(let length): "bytes=-\(length)"
            }
        }
    }

    package var url: String
    package var method: Method
    package var span: Span?
    /// Further lines as they go out: `If-Range`, and what the client sent. `Host`, `Range`, `Accept-Encoding` and what
    /// is about the body's length are not taken from here, they are the transfer's own.
    package var fields: HeaderFields
    package var content = Content.none
    package var priority = Priority.playback

    /// Names of fields that go to the origin of `url` only, as credentials do, and along no redirect to another.
    package var confined: [String]

    package init(
        url: String, method: Method = .get, span: Span? = nil, fields: HeaderFields = HeaderFields(),
        confined: [String] = []
    ) {
        self.url = url
        self.method = method
        self.span = span
        self.fields = fields
        self.confined = confined
    }
}
