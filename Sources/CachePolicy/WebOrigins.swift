import HTTPModel

/// The sites whose pages may read the proxy's answers and learn what is cached: `https://player.example`.
package struct WebOrigins: Sendable, Equatable {
    private let origins: Set<String>

    package static let none = WebOrigins(origins: [])

    private init(origins: Set<String>) { self.origins = origins }

    /// - Throws: for a text that is not an origin.
    package init(_ texts: [String]) throws(RuleError) {
        var origins: Set<String> = []
        for text in texts {
            guard let url = try? OriginURL(url: text), url.pathAndQuery == "/" else {
                throw RuleError(
                    "'\(text)' is not the origin of a page; write it like https://player.example or http://localhost:8080"
                )
            }
            origins.insert(url.origin)
        }
        self.origins = origins
    }

    /// - Parameter origin: as browsers write it.
    func contain(_ origin: String) -> Bool { origins.contains(origin) }
}

/// The sender of a request, as far as browsers reveal it. They send `Sec-Fetch-Site` only to https and to this
/// machine; and `Origin` with each request whose answer a script could read.
package enum Requester: Sendable, Equatable {
    /// A program, a person who typed the URL, or a page of the target's own site.
    case own
    /// A page that `web_origins` lists, by its origin.
    case trusted(String)
    /// A page of another site; nil if the browser does not name it.
    case foreign(String?)

    package init(_ request: RequestHead, _ trusted: WebOrigins = .none) {
        let site = request.value(of: "Sec-Fetch-Site")
        let isElsewhere = site != nil && site != "same-origin" && site != "none"
        guard let origin = request.value(of: "Origin") else {
            // A page can withhold its address, but cannot forge it.
            self =
                isElsewhere
                ? Self.page(request.value(of: "Referer").flatMap { try? OriginURL(url: $0) }?.origin, trusted) : .own
            return
        }
        // `Host` has been checked to be the proxy's own. The scheme is unknown: TLS may end before the proxy.
        if !isElsewhere, let page = try? OriginURL(url: origin), let host = request.value(of: "Host"),
            ASCII.equalIgnoringCase(page.authority, host)
        {
            self = .own
        } else {
            self = Self.page(origin, trusted)
        }
    }

    private static func page(_ origin: String?, _ trusted: WebOrigins) -> Requester {
        if let origin, trusted.contain(origin) { .trusted(origin) } else { .foreign(origin) }
    }

    package var isForeign: Bool { if case .foreign = self { true } else { false } }
}

extension OriginURL {
    /// The origin as browsers write it in `Origin` (RFC 6454 §6.2).
    var origin: String { scheme.rawValue + "://" + authority }
}
