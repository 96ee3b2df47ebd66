import HTTPModel

/// The `Referer` that an origin receives for the page that a player is on. That of a program arrives in full: its user
/// set it, and origins check it. That of a browser arrives as browsers send it without a policy (Referrer Policy §3.7,
/// strict-origin-when-cross-origin): the full URL to the page's own origin, only the origin to others, and nothing from
/// an https page to an http target.
package enum Referrer: Sendable, Equatable {
    /// As the player sent it, for a player to which the proxy is only an intermediary.
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

    /// The field for an origin that the player addresses by a proxy URL: `http://PROXY/https/host/page` becomes
    /// `https://host/page`.
    /// - Parameters:
    ///   - value: the field as the player sent it.
    ///   - isOfBrowser: whether a browser sent it.
    ///   - mounts: the mounts below which the proxy serves pages of origins.
    ///   - isOwn: whether a URL points to the proxy.
    package init(
        _ value: String, for target: OriginURL, isOfBrowser: Bool = true, mounts: [Mount], isOwn: (OriginURL) -> Bool
    ) {
        let named = try? OriginURL(url: value), page = named.flatMap { Self.page($0, mounts, isOwn) }
        if !isOfBrowser, let page, page == named {
            self = .page(page.absolute)
            return
        }
        self = page.flatMap { Self.value(of: $0, to: target) }.map(Referrer.page) ?? .none
    }

    /// The field after a redirect to another origin.
    package init(redirected value: String, to url: String) {
        guard let page = try? OriginURL(url: value), let target = try? OriginURL(url: url) else {
            self = .none
            return
        }
        self = Self.value(of: page, to: target).map(Referrer.page) ?? .none
    }

    private static func page(_ named: OriginURL, _ mounts: [Mount], _ isOwn: (OriginURL) -> Bool) -> OriginURL? {
        guard isOwn(named) else { return named }
        let path = named.pathAndQuery
        return OriginURL.isTarget(path) ? try? OriginURL(target: path) : (try? mounts.url(for: path)).flatMap { $0 }
    }

    private static func value(of page: OriginURL, to target: OriginURL) -> String? {
        if OriginURL.areSameOrigin(page, target) { return page.absolute }
        return page.scheme == .https && target.scheme == .http
            ? nil : page.scheme.rawValue + "://" + page.authority + "/"
    }
}
