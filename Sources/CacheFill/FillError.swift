import Activity
import CachePolicy
import DiskCache
import Upstream

/// Why bytes that a client waits for do not arrive.
package enum FillError: Error, Sendable, CustomStringConvertible {
    /// The origin could not be reached, or its answer broke off.
    case upstream(UpstreamError)
    /// The origin answered with an error to a request for more of a cached resource, or to its validation.
    case originStatus(Int)
    /// The origin has another version than the cached one: its validator or length differs.
    case changed
    /// The origin's answer does not fit the request.
    case unusable(String)
    /// The origin's answer is a web page, such as a captive portal's, or another text in place of media.
    /// - name: what it is.
    case strayPage(String)
    /// The store has no room, or the disk failed; the response continues without the cache.
    case notStored(String)
    /// The same, but soon the store may have room.
    case notStoredYet(String)
    /// The proxy is offline and contacts no origin.
    case offline
    /// The host is in back-off for this many more seconds.
    case busy(retryAfter: Int64)
    /// A text cannot be sent, as too much waits in memory already.
    case crowded
    /// The media behind a page was not found.
    case unlocated(ResolverFailure)

    package var description: String {
        switch self {
        case .upstream(let error): "\(error)"
        case .originStatus(let status): "the origin answered \(status) to a request for a cached resource"
        case .changed: "the origin's content has changed"
        case .unusable(let why): "the origin's answer cannot be used: \(why)"
        case .strayPage(let name):
            "\(name) came in place of the media, perhaps from a login page or a captive portal: open the URL in a browser"
        case .notStored(let why), .notStoredYet(let why): why
        case .offline: "this is not cached, and the proxy is offline"
        case .unlocated(let failure): "\(failure)"
        case .crowded: ProxyMetrics.Transit.exhausted
        case .busy(let seconds): "the origin is busy: try again in \(seconds) s"
        }
    }
}

extension FillError {
    /// - Parameter error: from making a file; nil if nothing could be evicted.
    static func noRoom(in store: CacheStore, after error: StoreError? = nil) -> FillError {
        if error?.isShortageOfFiles == true {
            return .notStoredYet("too many files are open: raise the limit on open files")
        }
        if store.ledger.uncounted > 0, error?.isShortageOfRoom != false {
            return .notStoredYet("nothing can be stored before the cache's files have been examined after a power cut")
        }
        let cause = error == nil ? "and everything in it is pinned or in use" : "or its disk failed"
        return .notStored("the cache is full, \(cause)")
    }

    package var kind: FailureKind {
        switch self {
        case .upstream(let error): error.kind
        case .originStatus: .originError
        case .changed: .originChanged
        case .unusable: .originUnusable
        case .strayPage: .page
        case .notStored, .notStoredYet: .noRoom
        case .offline: .offline
        case .crowded: .proxyBusy
        case .busy: .originBusy
        case .unlocated(let failure): failure.isTimeout ? .resolverTimeout : .resolverFailed
        }
    }
}

extension UpstreamError {
    fileprivate var kind: FailureKind {
        switch self {
        case .addressRefused: .addressRefused
        case .cannotResolve: .originUnresolved
        case .cannotConnect, .badURL, .proxyFailed, .proxyDenied: .originUnreachable
        case .tls: .originTLS
        case .timedOut(_, .queue), .timedOut(_, .names), .outOfDescriptors: .proxyBusy
        case .timedOut: .originTimeout
        case .tooManyRedirects, .badRedirect, .protocolViolation: .originUnusable
        case .broken, .interrupted: .originBroken
        }
    }
}
