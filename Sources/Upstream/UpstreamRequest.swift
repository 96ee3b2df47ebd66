import CachePolicy
import HTTPModel

/// A request to an origin: one URL, whole or a range of it.
package struct UpstreamRequest: Sendable {
    package enum Method: Sendable, Equatable {
        case get, head
        /// Sent once, without following redirects: its effect at an origin must not be repeated. Takes `Range` and
        /// `Accept-Encoding` from the fields.
        case other(String)

        var followsRedirects: Bool { self == .get || self == .head }
    }

    /// A body that the delegate supplies while it is sent (`TransferDelegate`). For methods other than GET and HEAD.
    package enum Content: Sendable, Equatable {
        case none
        /// This many bytes.
        case length(Int64)
        /// An unknown number of bytes: sent in chunks with HTTP/1.1.
        case unknownLength
    }

    /// Which transfers get slots first.
    package enum Priority: Sendable, CaseIterable {
        case playback, download
    }

    /// The requested bytes.
    package enum Span: Sendable, Equatable {
        /// Half-open; not empty.
        case bounded(Range<Int64>)
        /// From this offset to the end.
        case from(Int64)
        /// This many bytes at the end.
        case suffix(Int64)

        /// The value of `Range`, whose ends are inclusive (RFC 9110 §14.1.2).
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
    /// Further field lines: `If-Range`, and those of the client. `Host`, `Range`, `Accept-Encoding` and fields about
    /// the body's length are left out; the transfer sets its own.
    package var fields: HeaderFields
    package var content = Content.none
    package var priority = Priority.playback
    /// For whose request it is, by the address under which clients are counted; nil for the proxy itself.
    package var client: IPAddress?

    /// The cookies of its presentation; nil if the client keeps its own.
    package var cookies: CookieJars.Use?

    /// The URL of another cache, `http://host[:port]/`, that is asked for `url` as an HTTP proxy; nil to contact the
    /// origin.
    package var parent: String?

    /// Names of fields that, like credentials, go only to the origin of `url`, and do not follow a redirect to another.
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
