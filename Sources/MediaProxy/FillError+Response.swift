import CacheFill
import Upstream

/// The one place where failures become statuses and lines for the client.
extension FillError {
    var status: Int {
        switch self {
        case .upstream(.addressRefused): 403
        case .upstream(.badURL): 400
        case .upstream(.timedOut): 504
        case .upstream, .unusable, .changed: 502
        case .originStatus(let status): status
        case .notStored: 503
        }
    }

    var clientText: String {
        if case .upstream(.addressRefused(let host, let address)) = self {
            return "\(host) is at the private address \(address); to fetch from it, start the proxy with --allow \(host)"
        }
        return description
    }
}
