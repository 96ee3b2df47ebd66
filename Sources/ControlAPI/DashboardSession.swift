/// What is sent to sign a browser in to the dashboard.
package enum DashboardSession {
    /// A link that signs one browser in, once.
    package struct Link: Codable, Sendable {
        /// To be put after the address of the proxy. The secret is in the fragment, which browsers send to nobody; but the
        /// page at that path reads it, so it is the path that no origin can be mounted at.
        package let path: String
        /// How long it is valid.
        package let seconds: Int64

        package init(path: String, seconds: Int64) { (self.path, self.seconds) = (path, seconds) }
    }

    /// Whether a request shows a session of the dashboard.
    package struct Report: Codable, Sendable {
        package let isSignedIn: Bool
        /// Whether reading needs neither a session nor the token.
        package let readsFreely: Bool

        package init(isSignedIn: Bool, readsFreely: Bool) {
            (self.isSignedIn, self.readsFreely) = (isSignedIn, readsFreely)
        }
    }

    /// The secret of a session that the dashboard shows besides its cookie.
    package struct Key: Codable, Sendable {
        package let key: String

        package init(key: String) { self.key = key }
    }

    /// `{"link": "..."}` or `{"token": "..."}`
    package enum Credential: RequestBody {
        case link(String)
        case token(String)

        package static let example = "{\"token\": \"TOKEN\"}"

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case link, token
        }

        package init(from decoder: any Decoder) throws {
            let members = try decoder.members(CodingKeys.self)
            let link = try members.decodeIfThere(String.self, forKey: .link, form: "the text of a link")
            let token = try members.decodeIfThere(String.self, forKey: .token, form: "the text of control-token")
            switch (link, token) {
            case (let link?, nil): self = .link(link)
            case (nil, let token?): self = .token(token)
            default: throw ControlError(422, "send either link or token")
            }
        }

        package func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: CodingKeys.self)
            switch self {
            case .link(let text): try members.encode(text, forKey: .link)
            case .token(let text): try members.encode(text, forKey: .token)
            }
        }
    }
}
