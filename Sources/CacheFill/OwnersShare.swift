import CachePolicy
import HTTPModel
import Upstream

extension FetchState {
    /// What an origin sends besides its response to the client whose request a fetch forwards, and what nobody else
    /// gets. A value.
    struct OwnersShare: Sendable {
        let owner: FollowerID
        /// Values of `Set-Cookie`.
        var cookies: [String] = []
        /// In order.
        private(set) var interims: [InterimResponse] = []

        /// In all attempts of a fetch; an origin that sends more is up to something else.
        static let mostInterims = 16

        init(of owner: FollowerID) { self.owner = owner }

        mutating func take(_ interim: InterimResponse) {
            if interims.count < Self.mostInterims { interims.append(interim) }
        }
    }
}

extension HeaderFields {
    /// The cookies that the origin of a URL sets; none if the response came from another source, whose cookies a client
    /// would take for those of the URL.
    package func cookies(from source: String, for url: OriginURL) -> [String] {
        guard OriginURL.areSameOrigin(source, url.absolute) else { return [] }
        var fields = HeaderFields(all("Set-Cookie").map { .init(name: "Set-Cookie", value: $0) })
        fields.removeMalformed()
        return fields.lines.map(\.value)
    }
}

extension InterimResponse {
    /// Its fields for a client that means the origin of a URL; nil if it came from another one.
    package func fields(from url: OriginURL) -> HeaderFields? {
        guard OriginURL.areSameOrigin(self.url, url.absolute) else { return nil }
        var fields = fields
        fields.removeUnfitForClients()
        return fields
    }
}
