import HTTPModel

/// What an origin is told of the page that a player is on, as browsers tell it where no policy says otherwise (Referrer
/// Policy §3.7, strict-origin-when-cross-origin): its own pages by their URL, others by their origin, and nothing of a
/// page that came by https where it is asked by http.
package enum Referrer: Sendable, Equatable {
    /// As the player has sent it, to whom the proxy is no more than the way.
    case asSent
    case page(String)
    case none

    package func replace(in fields: inout HeaderFields) {
        switch self {
        case .asSent: return
        case .page(let url): fields.replace("Referer", url)
        case .none: fields.remove("Referer")
        }
    }

    /// The field for an origin that the player knows by a name of the proxy's: `http://PROXY/https/host/page` is
    /// `https://host/page` there.
    /// - Parameters:
    ///   - value: the field as the player has sent it.
    ///   - mounts: below which the proxy has pages of origins.
    ///   - isOwn: whether a URL is the proxy's.
    package init(_ value: String, for target: OriginURL, mounts: [Mount], isOwn: (OriginURL) -> Bool) {
        let page = (try? OriginURL(url: value)).flatMap { Self.page($0, mounts, isOwn) }
        self = page.flatMap { Self.told(of: $0, to: target) }.map(Referrer.page) ?? .none
    }

    /// The field where a request goes on to another origin.
    package init(redirected value: String, to url: String) {
        guard let page = try? OriginURL(url: value), let target = try? OriginURL(url: url) else {
            self = .none
            return
        }
        self = Self.told(of: page, to: target).map(Referrer.page) ?? .none
    }

    private static func page(_ named: OriginURL, _ mounts: [Mount], _ isOwn: (OriginURL) -> Bool) -> OriginURL? {
        guard isOwn(named) else { return named }
        let path = named.pathAndQuery
        return OriginURL.isTarget(path) ? try? OriginURL(target: path) : (try? mounts.url(for: path)).flatMap { $0 }
    }

    private static func told(of page: OriginURL, to target: OriginURL) -> String? {
        if OriginURL.areSameOrigin(page, target) { return page.absolute }
        return page.scheme == .https && target.scheme == .http
            ? nil : page.scheme.rawValue + "://" + page.authority + "/"
    }
}
