import CacheFill
import CachePolicy
import HTTPModel
import HTTPTransport
import Upstream

/// Maps failures to statuses and messages for the client, in this one place.
extension FillError {
    var status: Int {
        switch self {
        case .upstream(.addressRefused): 403
        case .upstream(.badURL): 400
        case _ where kind == .proxyBusy: 503
        case .upstream(.timedOut): 504
        case .unlocated where kind == .resolverTimeout: 504
        case .unlocated(.busy), .unlocated(.closing): 503
        case .upstream, .unusable, .changed, .strayPage, .unlocated: 502
        case .originStatus(let status): status
        case .notStored, .notStoredYet, .busy, .crowded: 503
        case .offline: 504
        }
    }

    /// Whether no request was sent to the origin.
    var isUnsent: Bool { kind == .offline || kind == .proxyBusy || isResolvers }

    var isStrayPage: Bool { kind == .page }

    /// Whether a resolver failed.
    var isResolvers: Bool { kind == .resolverFailed || kind == .resolverTimeout }

    /// Seconds after which a retry is worthwhile; nil if unknown.
    var retryAfter: Int64? {
        switch self {
        case .busy(let seconds), .unlocated(.refused(_, _, let seconds)): seconds
        case .unlocated(.busy): Self.ownRetryAfter
        default: kind == .proxyBusy ? Self.ownRetryAfter : nil
        }
    }

    /// In seconds: by then, another transfer may have ended.
    private static let ownRetryAfter: Int64 = 10

    /// - Parameter words: the terms (flags or settings) in which the message gives advice.
    func clientText(_ words: Advice.Words) -> String {
        if case .upstream(.addressRefused(let host, let address)) = self {
            return
                "\(host) is at the private address \(address); to fetch from it, \(Advice.allow(host: host).text(in: words))"
                .printable
        }
        // The text may quote the origin, and may end up in a terminal.
        return description.printable
    }
}

extension Exchange {
    /// Answers with a failure, and with when a retry is worthwhile.
    func respond(
        _ failure: FillError, _ words: Advice.Words, closes: Bool = false,
        configure: (inout Response) -> Void = { _ in }
    ) {
        respond(failure.status, text: failure.clientText(words), closes: closes) { response in
            if let seconds = failure.retryAfter { response.field("Retry-After", seconds) }
            configure(&response)
        }
    }
}
