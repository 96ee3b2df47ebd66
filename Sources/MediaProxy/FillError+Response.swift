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
        case _ where kind == .proxyBusy: 503
        case .upstream(.timedOut): 504
        case .upstream, .unusable, .changed, .strayPage: 502
        case .originStatus(let status): status
        case .notStored, .busy: 503
        case .offline: 504
        }
    }

    /// Whether the origin has not been asked.
    var isUnsent: Bool { kind == .offline || kind == .proxyBusy }

    var isStrayPage: Bool { kind == .page }

    /// Seconds after which it is worth to ask again; nil where nobody knows.
    var retryAfter: Int64? {
        if case .busy(let seconds) = self { seconds } else { kind == .proxyBusy ? Self.ownRetryAfter : nil }
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
