import CacheFill
import CachePolicy
import HTTPModel
import Upstream

/// The one place where failures become statuses and lines for the client.
extension FillError {
    var status: Int {
        switch self {
        case .upstream(.addressRefused): 403
        case .upstream(.badURL): 400
        case _ where isProxyBusy: 503
        case .upstream(.timedOut): 504
        case .upstream, .unusable, .changed, .strayPage: 502
        case .originStatus(let status): status
        case .notStored, .busy: 503
        case .offline: 504
        }
    }

    /// Whether the request could not be sent, as this proxy had too much to do: the origin has not been asked.
    private var isProxyBusy: Bool {
        switch self {
        case .upstream(.timedOut(_, .queue)), .upstream(.timedOut(_, .names)), .upstream(.outOfDescriptors): true
        default: false
        }
    }

    /// Whether the origin has not been asked.
    var isUnsent: Bool { if case .offline = self { true } else { isProxyBusy } }

    var isStrayPage: Bool { if case .strayPage = self { true } else { false } }

    /// In one word, for `Cache-Status`.
    var token: String {
        switch self {
        case _ where isProxyBusy: "proxy-busy"
        case .upstream(.timedOut): "origin-timeout"
        case .upstream: "origin-unreachable"
        case .originStatus: "origin-error"
        case .busy: "origin-busy"
        case .changed, .unusable: "origin-unusable"
        case .strayPage: Storing.Reason.page.rawValue
        case .notStored: "no-room"
        case .offline: "offline"
        }
    }

    /// Seconds after which it is worth to ask again; nil where nobody knows.
    var retryAfter: Int64? {
        if case .busy(let seconds) = self { seconds } else { isProxyBusy ? Self.ownRetryAfter : nil }
    }

    /// In seconds: by then another transfer may have ended.
    private static let ownRetryAfter: Int64 = 10

    /// - Parameter words: in which it says what helps.
    func clientText(_ words: Advice.Words) -> String {
        if case .upstream(.addressRefused(let host, let address)) = self {
            return
                "\(host) is at the private address \(address); to fetch from it, \(Advice.allow(host: host).text(in: words))"
                .printable
        }
        // It may quote the origin, and end up in a terminal.
        return description.printable
    }
}
