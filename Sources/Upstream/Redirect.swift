import HTTPModel

/// A redirect that a transfer follows.
package struct ReceivedRedirect: Sendable {
    /// The URL that redirects, and the fields that were sent there.
    package let url: String
    package let sent: HeaderFields
    package let status: Int
    package let fields: HeaderFields
    /// The URL that is requested next.
    package let target: String
    /// Whether all servers so far have public addresses.
    package let isPublic: Bool
}

/// A redirect that is known without a request.
package struct KnownRedirect: Sendable {
    /// As the origin wrote it: relative to the URL that redirects.
    package let location: String
    package let status: Int
    /// Whether the servers that redirected have public addresses.
    package let isPublic: Bool

    package init(location: String, status: Int, isPublic: Bool) {
        (self.location, self.status, self.isPublic) = (location, status, isPublic)
    }
}
