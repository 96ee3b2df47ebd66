import HTTPModel

/// A response before the final one (RFC 9110 §15.2), such as 103.
package struct InterimResponse: Sendable, Equatable {
    package let status: Int
    package let fields: HeaderFields
    /// Where it came from: a final response may be that of another URL.
    package let url: String

    package init(status: Int, fields: HeaderFields, url: String) {
        (self.status, self.fields, self.url) = (status, fields, url)
    }

    /// Those that concern more than the connection: 102 (RFC 2518 §10.1) and 103 (RFC 8297).
    package static func isForClients(_ status: Int) -> Bool { status == 102 || status == 103 }
}
